"""One HTML file that answers "did x* help?": opens offline, asks the network for nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from lupi import __version__
from lupi.errors import LupiError
from lupi.evidence.summary import Summary, summarise
from lupi.evidence.verdict import is_candidate
from lupi.records import ComparisonRecord, RunRecord, read_comparison, write_whole
from lupi.report.figures import Style, arm_styles, epoch_curves, learning_curves, variance_curves
from lupi.report.numbers import is_share, unit
from lupi.report.outcome import outcome
from lupi.report.pictures import Album, read_album
from lupi.report.provenance import environments, settings_yaml
from lupi.report.table import rows
from lupi.report.training import Row, mean_curve, sites_with_variance
from lupi.report.tuning import rows as tuning_rows
from lupi.report.tuning import title as tuning_title

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


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with the words around it; `title` says what sets it apart from its neighbours."""

    title: str
    label: str
    arms: frozenset[str]
    json: Markup
    moves: bool = True
    """Whether any curve changes over the epochs."""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Sample pictures and the run they are from."""

    album: Album
    arm: str
    size: int
    seed: int


def write_report(folder: Path, *, command: str | None = None) -> Path:
    """Judge the comparison in `folder` and write its report.html; return the page's path.

    Args:
        folder: Where comparison.json is, finished or not.
        command: What repeats the comparison; by default `lupi compare` with the settings shown.
    """
    record = read_comparison(folder)
    page = render(record, summarise(record), command)
    path = folder / "report.html"
    write_whole(path, lambda temporary: _write(temporary, page))
    return path


def _write(path: Path, page: str) -> None:
    path.write_text(page, encoding="utf-8")


def render(record: ComparisonRecord, summary: Summary, command: str | None = None) -> str:
    """Return the page as text."""
    warnings = list(summary.warnings)
    rows_of = _read_rows(record, warnings)
    styles = arm_styles(summary.arms, summary.reference)
    environment, unreadable = environments(run.folder for run in record.runs)
    warnings += unreadable
    variance = list(_variance(rows_of, summary, styles))
    gallery = _gallery(record, summary, warnings)
    template = _templates().get_template("report.html.j2")
    return template.render(
        summary=summary,
        outcome=outcome(summary),
        warnings=list(dict.fromkeys(warnings)),
        missing=list(_missing(summary)),
        failures=list(_failures(record)),
        legend=[(arm, styles[arm.name], GLYPHS[styles[arm.name].symbol]) for arm in summary.arms],
        unit=unit(summary.metric),
        points="points" if is_share(summary.metric) else summary.metric,
        learning=_learning(summary, styles),
        table=rows(summary),
        variance=variance,
        steady=not any(figure.moves for figure in variance),
        variance_arms={arm for figure in variance for arm in figure.arms},
        gallery=gallery,
        validation=list(_validation(rows_of, summary, styles)),
        tuning=summary.tuning,
        tuning_rows=tuning_rows(summary),
        tuning_title=tuning_title(summary),
        settings=settings_yaml(record),
        environment=environment,
        command=command,
        version=__version__,
        plotly_js=Markup(get_plotlyjs()),
    )


def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lupi.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read_rows(
    record: ComparisonRecord, warnings: list[str]
) -> dict[tuple[str, int], list[list[Row]]]:
    """Read every run's metrics once: (arm, size) → rows per seed."""
    found: dict[tuple[str, int], list[list[Row]]] = {}
    for run in record.runs:
        metrics, torn = run.metrics()
        warnings += torn
        found.setdefault((run.plan.arm, run.plan.size), []).append(metrics)
    return found


def _learning(summary: Summary, styles: Mapping[str, Style]) -> Drawing | None:
    if all(cell.mean is None for arm in summary.arms for cell in arm.cells):
        return None
    label = f"Test {summary.metric} against the number of labelled training examples, per arm"
    return _drawing("", label, learning_curves(summary, styles))


def _variance(
    rows_of: Mapping[tuple[str, int], list[list[Row]]],
    summary: Summary,
    styles: Mapping[str, Style],
) -> Iterator[Drawing]:
    """Draw each noise site at the largest size that logged its variance inside the box."""
    for size in reversed(summary.sizes):
        runs = {arm.name: rows_of.get((arm.name, size), []) for arm in summary.arms}
        # A site may belong to one arm only: dict.fromkeys merges them in order.
        sites = dict.fromkeys(s for logged in runs.values() for s in sites_with_variance(logged))
        for site in sites:
            inside, outside = (
                {
                    arm: curve
                    for arm, logged in runs.items()
                    if (curve := mean_curve(logged, "sites", site, key)) is not None
                }
                for key in ("variance_inside", "variance_outside")
            )
            figure = variance_curves(inside, outside, styles)
            title = f"{site}, n = {size}"
            label = f"Noise variance inside and outside the box at {site}"
            moves = any(curve.moves for curve in [*inside.values(), *outside.values()])
            yield replace(_drawing(title, label, figure), moves=moves)
        if sites:
            return


def _validation(
    rows_of: Mapping[tuple[str, int], list[list[Row]]],
    summary: Summary,
    styles: Mapping[str, Style],
) -> Iterator[Drawing]:
    for size in summary.sizes:
        curves = {}
        for arm in summary.arms:
            curve = mean_curve(rows_of.get((arm.name, size), []), "val", summary.metric)
            if curve is not None:
                curves[arm.name] = curve
        if curves:
            label = f"Validation {summary.metric} over the epochs with {size} training examples"
            yield _drawing(f"n = {size}", label, epoch_curves(curves, styles, summary.metric))


def _drawing(title: str, label: str, figure: go.Figure) -> Drawing:
    figure.update_layout(showlegend=False)  # the page has one legend for all figures
    # "<" never stands in JSON but inside strings, where its escape means the same: no </script>.
    text = str(figure.to_json()).replace("<", "\\u003c").replace("&", "\\u0026")
    arms = frozenset(trace.legendgroup for trace in figure.data)
    return Drawing(title, label, arms, Markup(text.replace(">", "\\u003e")))


def _gallery(record: ComparisonRecord, summary: Summary, warnings: list[str]) -> Gallery | None:
    """Take the first candidate's first seed at the largest size that has pictures: no picking."""
    candidates = [arm.name for arm in summary.arms if is_candidate(arm)]
    others = [arm.name for arm in summary.arms if not is_candidate(arm)]

    def rank(run: RunRecord) -> tuple[int, int, int]:
        order = [*candidates, *others]
        place = order.index(run.plan.arm) if run.plan.arm in order else len(order)
        return place, -run.plan.size, run.plan.seed

    for run in sorted(record.runs, key=rank):
        path = run.folder / "samples.npz"
        if not path.exists():
            continue
        try:
            return Gallery(read_album(path), run.plan.arm, run.plan.size, run.plan.seed)
        except LupiError as error:
            warnings.append(str(error))
    return None


def _missing(summary: Summary) -> Iterator[str]:
    for arm in summary.arms:
        for cell in arm.cells:
            if cell.n_missing:
                planned = cell.n_seeds + cell.n_missing
                yield f"{arm.name} at n = {cell.size}: {cell.n_missing} of {planned} runs"


def _failures(record: ComparisonRecord) -> Iterator[tuple[str, str]]:
    """Name the runs that failed, each with the last line of its traceback."""
    for run in record.runs:
        if run.failure is not None:
            lines = run.failure.strip().splitlines() or ["no message"]
            plan = run.plan
            yield f"{plan.arm}, n = {plan.size}, seed {plan.seed} ({plan.run_id})", lines[-1]
