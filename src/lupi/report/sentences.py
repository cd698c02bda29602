"""What is said beside the verdict: additional labels, partial x*, the worth of x*, tuning."""

from collections.abc import Iterable, Iterator
from typing import Any

from lupi.verdict.results import ArmSummary, Cell, LabelSaving, Summary, Tuning
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import (
    difference,
    interval,
    is_share,
    saving,
    saving_interval,
    score,
    unit,
)


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


def families(summary: Summary) -> dict[str, list[ArmSummary]]:
    """Return the arms of each family, by increasing fraction of rows with x*."""
    found: dict[str, list[ArmSummary]] = {}
    for arm in sorted(summary.arms, key=lambda arm: arm.xstar_frac):
        if arm.family:
            found.setdefault(arm.family, []).append(arm)
    return found


def percent(frac: float) -> str:
    """Format a fraction of the rows: `4 %`."""
    return f"{100 * frac:g} %"


def partial_sentences(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each family and size: at which fractions x* helps, and the gain."""
    for family, arms in families(summary).items():
        candidates = [arm for arm in arms if is_candidate(arm)]
        for size in summary.sizes if candidates else ():
            if all(arm.at(size).mean is None for arm in candidates):
                continue
            helped = [arm for arm in candidates if arm.at(size).verdict == "helps"]
            if helped:
                where = ", ".join(percent(arm.xstar_frac) for arm in helped)
                text = f"x* helps when {where} of the rows have it"
            else:
                text = "x* helps at no measured fraction"
            for arm in dict.fromkeys([*helped[:1], candidates[-1]]):  # the smallest, and all x*
                text += f"; {percent(arm.xstar_frac)}: {_gain(arm, size, summary)}"
            yield f"{family}, n = {size}: {text}."


def _gain(arm: ArmSummary, size: int, summary: Summary) -> str:
    cell = arm.at(size)
    against = cell.deciding
    if against is None:
        return "not measured yet"
    unit = "points" if is_share(summary.metric) else summary.metric
    text = f"{difference(against.mean, summary.metric)} {unit} against {against.other}"
    return f"{text}, 95 % interval {interval(against.interval, summary.metric)}"


def tuning_title(summary: Summary) -> str:
    """Return the score by which candidates are compared, or an empty string without candidates."""
    tuning = summary.tuning
    if tuning is None or not tuning.candidates:
        return ""
    seeds = "1 seed" if tuning.n_seeds == 1 else f"the mean of {tuning.n_seeds} seeds"
    return f"validation {unit(summary.metric)}, {seeds} at n = {tuning.size}"


def tuning_lines(summary: Summary) -> Iterator[str]:
    """Yield a title and, for each arm, the chosen candidate and the scores of the others."""
    tuning = summary.tuning
    if tuning is None:
        return
    if tuning.note is not None:
        yield f"How the settings were chosen: {tuning.note}"
        return
    yield f"Tuning: {tuning_title(summary)}"
    for arm in dict.fromkeys(tried.arm for tried in tuning.candidates):
        yield f"{arm}: {_choice(arm, tuning, summary.metric)}"


def _choice(arm: str, tuning: Tuning, metric: str) -> str:
    of_arm = [tried for tried in tuning.candidates if tried.arm == arm]
    chosen = next((tried for tried in of_arm if tried.chosen), None)
    if chosen is None:
        n_finished = sum(tried.n_finished for tried in of_arm)
        return f"{n_finished} of {sum(tried.n_planned for tried in of_arm)} trials finished"
    text = f"{score(chosen.score, metric)} with {settings_text(chosen.changes)}"
    if chosen.number != 0:
        text += f"; initial settings {score(of_arm[0].score, metric)}"
    rest = sorted(t.score for t in of_arm if t.number and not t.chosen and t.score is not None)
    if len(rest) == 1:
        text += f"; another {score(rest[0], metric)}"
    elif rest:
        text += f"; {len(rest)} others {score(rest[0], metric)} to {score(rest[-1], metric)}"
    return text


def settings_text(changes: dict[str, Any]) -> str:
    """Return the settings of a candidate that differ from the initial ones."""
    if not changes:
        return "initial settings"
    return ", ".join(
        f"{key.removeprefix('settings.')} {value}" for key, value in sorted(changes.items())
    )
