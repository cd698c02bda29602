"""The summary of a comparison for the terminal: fits 80 columns and does not need colour."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from lupi.report.outcome import outcome
from lupi.report.sentences import (
    additional_labels,
    partial_sentences,
    tuning_lines,
)
from lupi.report.subgroups import NOTE, subgroup_rows
from lupi.verdict.results import LOOKS, Cell, Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import NOTHING, half_width, score, unit
from lupi.verdict.words import at_sizes

WIDEST_NAME = 28


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """Headline, scores, label saving, warnings.

    Sizes are columns; if the console is too narrow for all of them, further tables follow below.
    """

    summary: Summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render for the width of this console."""
        summary, width = self.summary, options.max_width
        yield _wrapped(f"{summary.comparison}: {outcome(summary).label}", width, style="bold")
        yield _wrapped(summary.headline, width)
        yield _wrapped(summary.statement.exact, width)
        yield Text("")
        for columns in _blocks(summary, width):
            yield _scores(summary, columns)
            yield Text("")
        for line in (*_legend(summary), *summary.statement.notes):
            yield _wrapped(line, width, style="dim")
        if partial := list(partial_sentences(summary)):
            yield Text("")
        for sentence in partial:
            yield _wrapped(sentence, width)
        yield from _label_saving(summary, width)
        yield from _subgroups(summary, width)
        yield from _tuning(summary, width)
        if summary.warnings:
            yield Text("\nWarnings", style="bold")
        for warning in summary.warnings:
            yield _wrapped(warning, width, first="  ! ", rest="    ")


def _wrapped(text: str, width: int, first: str = "", rest: str = "", style: str = "") -> Text:
    """Wrap with a hanging indent and no trailing spaces; `n = 75` and `4 %` stay on one line."""
    joined = text.replace("n = ", "n\u00a0=\u00a0").replace(" %", "\u00a0%")
    lines = textwrap.wrap(
        joined, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return Text("\n".join(lines).replace("\u00a0", " "), style=style)


def _blocks(summary: Summary, width: int) -> Iterator[Sequence[int]]:
    """Split the sizes (column numbers) into groups that fit side by side."""
    name_width = min(max([len(arm.name) for arm in summary.arms] + [3]), WIDEST_NAME)
    entries = [
        [len(_entry(arm.cells[i], summary.metric).plain) for arm in summary.arms]
        + [len(_head(size))]
        for i, size in enumerate(summary.sizes)
    ]
    block: list[int] = []
    used = name_width
    for i, lengths in enumerate(entries):
        needed = max(lengths) + 2
        if block and used + needed > width:
            yield block
            block, used = [], name_width
        block.append(i)
        used += needed
    if block:
        yield block


def _scores(summary: Summary, columns: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold", max_width=WIDEST_NAME)
    for i in columns:
        table.add_column(_head(summary.sizes[i]), justify="right", no_wrap=True)
    for arm in summary.arms:
        entries = [_entry(arm.cells[i], summary.metric) for i in columns]
        table.add_row(Text(arm.name), *entries)
    return table


def _head(size: int) -> str:
    return f"n = {size}  "  # two columns for the mark


def _entry(cell: Cell, metric: str) -> Text:
    if cell.mean is None:
        return Text(f"{NOTHING}  ")
    spread = f" ± {half_width(cell.interval, metric)}" if cell.interval else ""
    text = Text(f"{score(cell.mean, metric)}{spread} ")
    look = LOOKS[cell.verdict]
    text.append(look.mark, style=look.colour)
    return text


def _legend(summary: Summary) -> Iterator[str]:
    yield f"{unit(summary.metric)} on test data: mean ± half the 95 % interval over seeds"
    if marks := marks_text(summary):
        yield f"{marks}; arms that don't test x* are compared with {summary.reference} only"
    oracles = [arm.name for arm in summary.arms if arm.sees_xstar_at_test]
    if oracles:
        yield f"sees x* at test time, for reference only: {', '.join(oracles)}"
    classical = [arm.name for arm in summary.arms if arm.classical]
    if classical:
        yield f"classical models, for reference only: {', '.join(classical)}"
    yield from scopes(summary)
    if pointing := pointing_text(summary):
        yield pointing
    if summary.trivial is not None:
        yield f"a predictor that ignores x scores {score(summary.trivial, summary.metric)}"


def pointing_text(summary: Summary) -> str:
    """Return how often students with attention look at the region, at the largest size."""
    scores = {
        (arm.name, cell.size): cell.recorded["pointing"]
        for arm in summary.arms
        for cell in arm.cells
        if "pointing" in cell.recorded
    }
    largest = max((size for _, size in scores), default=0)
    found = [f"{arm} {100 * score:.0f}" for (arm, size), score in scores.items() if size == largest]
    looks = f"attention has its maximum inside x* (% of test rows, n = {largest}): "
    return looks + ", ".join(found) if found else ""


def scopes(summary: Summary) -> Iterator[str]:
    """Yield what the verdicts apply to, if the record describes how rows were drawn."""
    sizes: dict[str, list[int]] = {}
    for cell in next((arm.cells for arm in summary.arms if is_candidate(arm)), ()):
        if cell.scope is not None and cell.verdict != "not run":
            sizes.setdefault(cell.scope, []).append(cell.size)
    for scope, found in sizes.items():
        where = f" at {at_sizes(found)}" if len(sizes) > 1 else ""
        yield f"verdicts{where} apply to {scope}"


def marks_text(summary: Summary) -> str:
    """Return the meaning of the marks that are used."""
    used = {cell.verdict for arm in summary.arms for cell in arm.cells if cell.mean is not None}
    return ", ".join(
        f"{look.mark} {word}" for word, look in LOOKS.items() if word in used and look.mark != " "
    )


def _label_saving(summary: Summary, width: int) -> Iterator[Text]:
    """Yield one entry per arm that could show that x* helps, with the sizes where it is known."""
    answers = additional_labels(summary)
    if answers:
        title = "\nAdditional labels others need for the same score (factor, 95 % interval)"
        yield Text(title, style="bold")
    for name, known in answers.items():
        yield _wrapped(f"{name}: {', '.join(known)}", width, first="  ", rest="    ")


def _subgroups(summary: Summary, width: int) -> Iterator[RenderableType]:
    """Yield a table of the results by subgroup at the largest size."""
    if not summary.subgroups:
        return
    size = summary.sizes[-1]
    title = f"\nBy {summary.subgroups[0].column}, n = {size}, {unit(summary.metric)}"
    yield Text(title, style="bold")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for head in ("arm", "subgroup"):
        table.add_column(head, overflow="fold")
    for head in ("plain", "mean", "over plain", "over best control"):
        table.add_column(head, justify="right", overflow="fold")
    for row in subgroup_rows(summary, size):
        table.add_row(*map(Text, row))
    yield table
    yield _wrapped(NOTE, width, style="dim")


def _tuning(summary: Summary, width: int) -> Iterator[Text]:
    title, *arms = [*tuning_lines(summary)] or [""]
    if title:
        yield Text("")
        yield _wrapped(title, width, style="bold" if arms else "")
    for line in arms:
        yield _wrapped(line, width, first="  ", rest="    ")
