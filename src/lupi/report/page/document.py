"""The HTML report of a comparison: a single file that works offline."""

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plotly.offline import get_plotlyjs

from lupi import __version__
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.records import ComparisonRecord, RunRecord
from lupi.report.figures.curves import run_figures
from lupi.report.figures.styles import arm_styles
from lupi.report.outcome import outcome
from lupi.report.page.drawings import (
    draw_forest,
    draw_fractions,
    draw_learning,
    draw_validation,
    draw_variance,
    draw_worth,
)
from lupi.report.page.provenance import environments, settings_yaml
from lupi.report.samples import Album, ShadedSite, read_album, read_looks, shade_texts
from lupi.report.sentences import (
    additional_labels,
    partial_sentences,
    settings_text,
    tuning_title,
)
from lupi.report.sheets.sheet import templates
from lupi.report.subgroups import NOTE, subgroup_rows
from lupi.report.terminal import pointing_text
from lupi.report.training import Row, run_logs
from lupi.report.worth import worth_sentences
from lupi.text_samples import read_text_samples
from lupi.verdict.results import LOOKS, LabelSaving, Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import (
    difference,
    interval,
    is_share,
    p_value,
    saving,
    saving_interval,
    score,
    unit,
)
from lupi.worth import Surface, find_surface

GLYPHS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "cross": "✚",
    "x": "✖",
    "triangle-down": "▼",
    "star": "★",
}
"""The markers of the figures, for the legend."""


CONTROLS = {
    "shuffled": "the same arm with another row's x*",
    "constant": "the same arm with the mean of all x*",
    "random": "the same arm with random x*",
    "lexicon": "the same arm with the words of a list as x*",
}


@dataclass(frozen=True, slots=True)
class Gallery:
    """Sample images or texts of one run."""

    arm: str
    size: int
    seed: int
    album: Album | None = None
    texts: Sequence[ShadedSite] = ()


def render(
    record: ComparisonRecord,
    summary: Summary,
    command: str | None = None,
) -> str:
    """Return the page as HTML."""
    warnings = list(summary.warnings)
    rows_of_runs = _read_rows(record, warnings)
    rows_of: dict[tuple[str, int], list[list[Row]]] = {}
    for run, its_rows in zip(record.runs, rows_of_runs, strict=True):
        rows_of.setdefault((run.plan.arm, run.plan.size), []).append(its_rows)
    styles = arm_styles(summary.arms, summary.reference)
    environment, unreadable = environments(run.folder for run in record.runs)
    warnings += unreadable
    drawn = list(draw_variance(rows_of, summary, styles))
    variance = [figure for figure in drawn if figure.moves]
    gallery = _gallery(record, summary, warnings)
    looks = read_looks(record, summary, warnings, _class_names(record))
    surface = _surface(record)
    template = templates().get_template("report.html.j2")
    return template.render(
        summary=summary,
        outcome=outcome(summary),
        warnings=list(dict.fromkeys(warnings)),
        missing=list(_missing(summary)),
        failures=list(_failures(record)),
        legend=[(arm, styles[arm.name], GLYPHS[styles[arm.name].symbol]) for arm in summary.arms],
        unit=unit(summary.metric),
        points="points" if is_share(summary.metric) else summary.metric,
        trivial=None if summary.trivial is None else score(summary.trivial, summary.metric),
        facts=record.facts,
        controls=_explained(summary),
        learning=draw_learning(summary, styles),
        forest=draw_forest(summary, styles),
        margin=any(cell.margin for arm in summary.arms for cell in arm.cells),
        additional_labels=additional_labels(summary),
        fractions=list(draw_fractions(summary)),
        partial=list(partial_sentences(summary)),
        worth=None if surface is None else list(worth_sentences(surface)),
        worth_figure=draw_worth(surface) if surface is not None and surface.fits else None,
        score=score,
        difference=difference,
        interval=interval,
        p_value=p_value,
        saving=saving,
        saving_interval=saving_interval,
        saving_rank=_saving_rank,
        ranks={verdict: -i for i, verdict in enumerate(LOOKS)},
        heading=unit,
        settings_text=settings_text,
        subgroups={size: list(subgroup_rows(summary, size)) for size in summary.sizes},
        subgroup_note=NOTE,
        other_scores=_other_scores(summary),
        published=read_published(record),
        variance=variance,
        noise_is_fixed=bool(drawn) and not variance,
        variance_arms={arm for figure in variance for arm in figure.arms},
        gallery=gallery,
        looks=looks,
        pointing=pointing_text(summary),
        validation=list(draw_validation(rows_of, summary, styles)),
        runs=packed(
            json.dumps(
                {
                    "first": next((arm.name for arm in summary.arms if is_candidate(arm)), None),
                    "figures": run_figures(),
                    "runs": run_logs(record, rows_of_runs),
                },
                allow_nan=False,
            )
        ),
        tuning=summary.tuning,
        tuning_title=tuning_title(summary),
        settings=settings_yaml(record),
        environment=environment,
        command=command,
        version=__version__,
        plotly=packed(get_plotlyjs()),
    )


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """Scores of a publication. They are shown but never judged."""

    source: str
    scores: dict[tuple[str, int], float]
    """By arm and size."""


def read_published(record: ComparisonRecord) -> PublishedScores | None:
    """Return the scores under `paper` in the settings; None if missing or invalid."""
    paper = record.settings.get("paper")
    try:
        scores = {
            (arm, int(size)): float(score)
            for arm, by_size in paper["scores"].items()  # type: ignore[index]
            for size, score in by_size.items()
        }
        return PublishedScores(str(paper["source"]), scores)  # type: ignore[index]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _saving_rank(found: LabelSaving | None) -> float | str:
    """Return a sort key: factors beyond the measured sizes come first, those below last."""
    if found is None or found.reach == "unknown":
        return ""
    return {"beyond range": 1e9, "below range": 0.0}.get(found.reach, found.factor or 0.0)


def _other_scores(summary: Summary) -> dict[int, list[str]]:
    """Return the names of all scores by size, that of the verdict first, if there are others."""
    found = {}
    for size in summary.sizes:
        names = {name for arm in summary.arms for name in arm.at(size).recorded} - {summary.metric}
        if names:
            found[size] = [summary.metric, *sorted(names)]
    return found


def _surface(record: ComparisonRecord) -> Surface | None:
    """Return what x* is worth, if the comparison can tell."""
    try:
        return find_surface(record)
    except LupiError:
        return None  # other sizes, fractions or arms would be needed


def packed(text: str) -> str:
    """Compress a text to a quarter of its size; the page decompresses it in the browser."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _read_rows(record: ComparisonRecord, warnings: list[str]) -> list[list[Row]]:
    """Read every run's metrics once, in the order of the record."""
    found = []
    for run in record.runs:
        metrics, torn = run.metrics()
        warnings += torn
        found.append(metrics)
    return found


def _gallery(record: ComparisonRecord, summary: Summary, warnings: list[str]) -> Gallery | None:
    """Return the samples of the first candidate's first seed at the largest size with samples."""
    candidates = [arm.name for arm in summary.arms if is_candidate(arm)]
    others = [arm.name for arm in summary.arms if not is_candidate(arm)]

    def rank(run: RunRecord) -> tuple[int, int, int]:
        order = [*candidates, *others]
        place = order.index(run.plan.arm) if run.plan.arm in order else len(order)
        return place, -run.plan.size, run.plan.seed

    for run in sorted(record.runs, key=rank):
        images, texts = run.folder / "samples.npz", run.folder / "samples.json"
        about = (run.plan.arm, run.plan.size, run.plan.seed)
        try:
            if images.exists():
                return Gallery(*about, album=read_album(images, _classes(run.folder)))
            if texts.exists():
                return Gallery(*about, texts=shade_texts(read_text_samples(texts)))
        except LupiError as error:
            warnings.append(str(error))
    return None


def _explained(summary: Summary) -> dict[str, str]:
    """Return explanations of the controls in the comparison, and of the oracle."""
    there = {arm.control for arm in summary.arms}
    found = {f"…/{control}": text for control, text in CONTROLS.items() if control in there}
    if any(arm.sees_xstar_at_test for arm in summary.arms):
        found["oracle"] = "also sees x* at test time; shows how much x* could help at best"
    return found


def _class_names(record: ComparisonRecord) -> Sequence[str]:
    return next((names for run in record.finished if (names := _classes(run.folder))), ())


def _classes(folder: Path) -> Sequence[str]:
    """Return the class names of a run, if it recorded them."""
    path = folder / "preprocessing.json"
    if not path.exists():
        return ()
    target = read_json(path).get("target")
    names = target.get("classes") if isinstance(target, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else ()


def _missing(summary: Summary) -> Iterator[str]:
    for arm in summary.arms:
        for cell in arm.cells:
            if cell.n_missing:
                planned = cell.n_seeds + cell.n_missing
                yield f"{arm.name} at n = {cell.size}: {cell.n_missing} of {planned} runs"


def _failures(record: ComparisonRecord) -> Iterator[tuple[str, str]]:
    """Yield the failed runs, each with the last line of its traceback."""
    for run in record.runs:
        if run.failure is not None:
            lines = run.failure.strip().splitlines() or ["no message"]
            plan = run.plan
            yield f"{plan.arm}, n = {plan.size}, seed {plan.seed} ({plan.run_id})", lines[-1]
