"""Additional labels that other arms need for the same score."""

from collections.abc import Iterable, Iterator

from lupi.report.numbers import saving, saving_interval
from lupi.verdict.results import Cell, LabelSaving, Summary
from lupi.verdict.roles import is_candidate


def additional_labels(summary: Summary) -> dict[str, list[str]]:
    """Return the answers for each arm that could show that x* helps, one per size.

    There are none with a single size, because there is no learning curve.
    """
    if len(summary.sizes) < 2:
        return {}
    answers = {arm.name: list(_answers(arm.cells)) for arm in summary.arms if is_candidate(arm)}
    return {arm: found for arm, found in answers.items() if found}


def _answers(cells: Iterable[Cell]) -> Iterator[str]:
    for cell in cells:
        for saved in (cell.label_saving, cell.label_saving_control):
            if saved is not None and saved.reach != "unknown":
                yield f"{saved.other} {_answer(saved, cell.size)}"


def _answer(saved: LabelSaving, size: int) -> str:
    if saved.factor is None:
        return f"{saved.reach} at n = {size}"
    extra = round((saved.factor - 1) * size)
    more = f"{extra} more" if extra >= 0 else f"{-extra} fewer"
    factor = ", ".join(part for part in (saving(saved), saving_interval(saved)) if part)
    return f"{more} at n = {size} ({factor})"
