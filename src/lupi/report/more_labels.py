"""How many more labels would I need without x*? The label-saving factor in people's units."""

from collections.abc import Iterable, Iterator

from lupi.evidence.summary import Cell, Summary
from lupi.evidence.verdict import is_candidate
from lupi.report.numbers import saving, saving_interval


def more_labels(summary: Summary) -> dict[str, list[str]]:
    """Return, for each arm that could show that x* helps, an answer per size that has one.

    One size alone makes no curve to read an answer from.
    """
    if len(summary.sizes) < 2:
        return {}
    answers = {arm.name: list(_answers(arm.cells)) for arm in summary.arms if is_candidate(arm)}
    return {arm: found for arm, found in answers.items() if found}


def _answers(cells: Iterable[Cell]) -> Iterator[str]:
    for cell in cells:
        saved = cell.label_saving
        if saved is None or saved.reach == "unknown":
            continue
        if saved.factor is None:
            yield f"{saved.reach} at n = {cell.size}"
            continue
        extra = round((saved.factor - 1) * cell.size)
        more = f"{extra} more" if extra >= 0 else f"{-extra} fewer"
        interval = saving_interval(saved)
        factor = f"{saving(saved)}, {interval}" if interval else saving(saved)
        yield f"{more} at n = {cell.size} ({factor})"
