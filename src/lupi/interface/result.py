"""The result of `lupi.compare`: verdict, scores of all runs, report and students."""

import io
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lupi.files import write_text
from lupi.records import ComparisonRecord, RunRecord, read_comparison
from lupi.report.outcome import outcome
from lupi.verdict.results import Summary, Verdict
from lupi.verdict.summary import summarise

if TYPE_CHECKING:
    import pandas as pd

    from lupi.worth import Surface

WIDTH = 80


class Comparison:
    """A comparison, finished or not, as recorded in its folder. Print it, or show it in a notebook.

    Args:
        folder: Folder that `lupi.compare` or `lupi compare` wrote.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.record: ComparisonRecord = read_comparison(self.folder)
        """Settings, arms, planned runs and their results."""

    @cached_property
    def summary(self) -> Summary:
        """All verdicts and numbers, as `lupi.judge` returns them, and facts about the runs."""
        return summarise(self.record)

    @property
    def verdict(self) -> str:
        """Answer in a few words, such as `x* helps`."""
        return outcome(self.summary).label

    @property
    def headline(self) -> str:
        """Answer in a sentence: which arm, at which sizes, by how much, with what interval."""
        return self.summary.headline

    @property
    def verdicts(self) -> dict[tuple[str, int], Verdict]:
        """Verdict for each arm that trains with x*, at each size."""
        return self.summary.verdicts

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that a reader of the verdict must know."""
        return self.summary.warnings

    @property
    def failures(self) -> dict[str, str]:
        """Last line of the error of each failed run, by arm, size and seed."""
        return {
            f"{run.plan.arm}, n = {run.plan.size}, seed {run.plan.seed}": _last_line(run.failure)
            for run in self.record.runs
            if run.failure is not None
        }

    @property
    def is_complete(self) -> bool:
        """Whether every planned run has a result."""
        return len(self.record.finished) == len(self.record.runs)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per planned run: arm, size, seed, score (on test rows), all metrics.

        Runs without a result have a missing score.
        """
        import pandas as pd

        return pd.DataFrame([self._row(run) for run in self.record.runs])

    def to_dict(self) -> dict[str, Any]:
        """Return the judged comparison in plain types: what `lupi compare --json` prints.

        Beside the judged arms, it has the `verdict` in words, the `facts` about the data, the
        `outlook` before the first run, and `advice` on what to do next.
        """
        facts = [{"about": fact.about, "text": fact.text} for fact in self.record.facts]
        outlook = next((fact.text for fact in self.record.facts if fact.about == "outlook"), None)
        return {
            "verdict": self.verdict,
            **self.summary.to_dict(),
            "facts": facts,
            "outlook": outlook,
            "advice": self.advice,
        }

    @property
    def advice(self) -> list[str]:
        """What to do next, in a sentence each."""
        if not self.is_complete:
            return ["Runs are missing: run the same command again to resume."]
        ship = "Train the student to ship on all labels: lupi export --refit."
        return [self.summary.statement.advice, ship]

    def plot(self, what: Literal["scores", "differences"] = "scores") -> Any:
        """Return a plotly figure: scores over training-set sizes, or differences to controls."""
        from lupi.report.figures.forest import forest_plot
        from lupi.report.figures.learning import learning_curves, score_dots
        from lupi.report.figures.styles import arm_styles

        styles = arm_styles(self.summary.arms, self.summary.reference)
        if what == "differences":
            return forest_plot(self.summary, styles)
        draw = learning_curves if len(self.summary.sizes) > 1 else score_dots
        return draw(self.summary, styles)

    def report(self, path: str | Path | None = None, *, command: str | None = None) -> Path:
        """Write the page (one HTML file that opens offline) and return its path.

        Args:
            path: Path of the page; by default report.html in the folder of the records.
            command: Command that repeats the comparison; by default `lupi compare`.
        """
        from lupi.report.page.document import render

        path = Path(path) if path is not None else self.folder / "report.html"
        write_text(path, render(self.record, self.summary, command))
        return path

    def worth(self, arm: str | None = None) -> "Surface":
        """Fit what x* is worth in labels, from arms with several `xstar_fracs`.

        The surface has `worth(n)`, labels per x*; `score(n, m)`; `best_mix(budget, ...)`.

        Args:
            arm: Name of the arm in the settings; only needed if several have `xstar_fracs`.
        """
        from lupi.worth import find_surface

        return find_surface(self.record, arm)

    def student(
        self,
        arm: str | None = None,
        size: int | None = None,
        seed: int | None = None,
        *,
        refit: bool = False,
    ) -> Any:
        """Load a trained student, which predicts from x alone.

        Args:
            arm: by default the one with the best validation scores; test rows have no say.
            size: training rows; by default the most that all arms have.
            seed: by default the one with the best validation score.
            refit: train the arm once more on all labels, those of test rows included; what to
                expect of it is what the comparison measured with fewer labels.

        Returns:
            A `Student` with `predict`; of a comparison on a task of one's own, the network itself,
            an `nn.Module` in `eval()`.
        """
        from lupi.ship.pick import pick_run
        from lupi.ship.student import load_student
        from lupi.train.finished import read_finished

        if refit:
            from lupi.errors import LupiError
            from lupi.ship.refit import refit as train_again

            if size is not None:
                raise LupiError("size: refit=True trains on all labels; leave it out")
            return load_student(train_again(self.folder, arm, seed or 0).folder)
        picked = pick_run(self.folder, arm, size, seed)
        if self.record.settings["task"]["name"] == "custom":
            return read_finished(picked.folder).student
        return load_student(picked.folder)

    def _row(self, run: RunRecord) -> dict[str, Any]:
        arm = next(arm for arm in self.record.arms if arm.name == run.plan.arm)
        result = run.result or {}
        metrics = result.get("metrics", {})
        return {
            "arm": run.plan.arm,
            "method": arm.method,
            "control": arm.control,
            "size": run.plan.size,
            "seed": run.plan.seed,
            "score": metrics.get("test", {}).get(self.record.metric.name, float("nan")),
            "status": result.get("status", "failed" if run.failure else "not run"),
            "collapsed": result.get("collapsed"),
            **{
                f"{split}_{name}": value
                for split, scores in metrics.items()
                for name, value in scores.items()
            },
            "run": run.plan.run_id,
        }

    def __repr__(self) -> str:
        """Return one line: the name, the verdict, how many runs, where."""
        return (
            f"<Comparison {self.summary.comparison!r}: {self.verdict}; {len(self.record.finished)} "
            f"of {len(self.record.runs)} runs, in {self.folder}>"
        )

    def __str__(self) -> str:
        """Return what `lupi compare` prints."""
        from lupi.interface.console import PlainConsole
        from lupi.report.terminal import SummaryTable

        text = io.StringIO()
        console = PlainConsole(file=text, width=WIDTH, color_system=None, force_jupyter=False)
        console.print(SummaryTable(self.summary))
        return text.getvalue()

    def _repr_html_(self) -> str:
        """Return verdict, table and warnings for a notebook."""
        page = self.folder / "report.html"
        link = f'<p><a href="{escape(str(page))}">{escape(str(page))}</a></p>'
        return f"<h4>{escape(self.verdict)}</h4>{self.summary._repr_html_()}{link}"


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""
