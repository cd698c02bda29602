"""What is said beside the verdict: additional labels, partial x*, the worth of x*, tuning."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from lupi.verdict.worth import Estimate, Mix, Surface


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


def cell_at(arm: ArmSummary, size: int) -> Cell:
    """Return the cell of an arm at one size."""
    return next(cell for cell in arm.cells if cell.size == size)


def partial_sentences(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each family and size: at which fractions x* helps, and the gain."""
    for family, arms in families(summary).items():
        candidates = [arm for arm in arms if is_candidate(arm)]
        for size in summary.sizes if candidates else ():
            if all(cell_at(arm, size).mean is None for arm in candidates):
                continue
            helped = [arm for arm in candidates if cell_at(arm, size).verdict == "helps"]
            if helped:
                where = ", ".join(percent(arm.xstar_frac) for arm in helped)
                text = f"x* helps when {where} of the rows have it"
            else:
                text = "x* helps at no measured fraction"
            for arm in dict.fromkeys([*helped[:1], candidates[-1]]):  # the smallest, and all x*
                text += f"; {percent(arm.xstar_frac)}: {_gain(arm, size, summary)}"
            yield f"{family}, n = {size}: {text}."


def _gain(arm: ArmSummary, size: int, summary: Summary) -> str:
    cell = cell_at(arm, size)
    against = cell.deciding
    if against is None:
        return "not measured yet"
    unit = "points" if is_share(summary.metric) else summary.metric
    text = f"{difference(against.mean, summary.metric)} {unit} against {against.other}"
    return f"{text}, 95 % interval {interval(against.interval, summary.metric)}"


EVEN = 0.95
"""From this share on, all x* are worth about the same."""
STEADY = 0.1
"""Up to this fade, x* is worth about the same at all sizes."""


def worth_sentences(surface: Surface, n: int | None = None) -> Iterator[str]:
    """Yield what one x* is worth, at n labels; by default at the largest measured size."""
    n = n or surface.largest_n
    if not surface.fits:
        yield (
            f"The surface does not fit the scores (p = {surface.p_fit:.3f}), so lupi does not say "
            "what x* is worth. Compare the scores by fraction of rows with x* instead."
        )
        return
    worth = surface.worth(n)
    if not surface.helps:
        yield (
            f"x* is not shown to be worth anything here: one x* is worth {_labels(worth)}. "
            "Buy labels."
        )
        return
    share, fade = surface.parameters[4:]
    if share >= EVEN and fade <= STEADY:
        yield f"One x* is worth {_labels(worth)}."
    else:
        yield f"With x* for all of {n:,} rows, one x* is worth {_labels(worth)}."
    if share < EVEN:
        part = max(1, n // 4)
        first, rest = surface.worth(n, 0, part), surface.worth(n, part, n)
        yield (
            f"The first {part:,} are worth {first.value:.1f} labels each, "
            f"the other {n - part:,} {rest.value:.1f}."
        )
    if fade > STEADY and n > surface.smallest_n:
        fewest = surface.smallest_n
        yield f"With {fewest:,} rows, one x* is worth {_labels(surface.worth(fewest))}."
    yield (
        f"Measured with {surface.arm} against {surface.plain}, {surface.n_seeds} seeds, "
        f"{surface.smallest_n:,} to {surface.largest_n:,} rows."
    )


def mix_sentences(surface: Surface, mix: Mix, budget: float) -> Iterator[str]:
    """Yield what to buy for a budget, and what it gains over labels alone."""
    if not surface.fits:
        yield from worth_sentences(surface)
        return
    unit = "points" if is_share(surface.metric) else surface.metric
    if mix.m == 0:
        yield (
            f"For {budget:g}: buy {mix.n:,} labels and no x*; expected "
            f"{_score(mix.score, surface.metric)}."
        )
        return
    yield (
        f"For {budget:g}: buy {mix.n:,} labels, {mix.m:,} of them with x*; expected "
        f"{_score(mix.score, surface.metric)}."
    )
    low, high = (difference(end, surface.metric) for end in mix.gain[1:])
    yield (
        f"Labels alone ({mix.labels_only_n:,}) are expected to reach "
        f"{_score(mix.labels_only, surface.metric)}: the mix gains "
        f"{difference(mix.gain.value, surface.metric)} {unit} ({low} to {high})."
    )
    if mix.n > surface.largest_n or mix.labels_only_n > surface.largest_n:
        yield f"This extrapolates: the largest measured size is {surface.largest_n:,}."


def point_rows(surface: Surface) -> list[tuple[str, str, str, str]]:
    """Return labels, x*, measured and fitted score of each point, for a table."""
    return [
        (
            f"{point.n:,}",
            f"{point.m:,}",
            score(sum(point.scores.values()) / len(point.scores), surface.metric),
            score(surface.score(point.n, point.m).value, surface.metric),
        )
        for point in sorted(surface.points)
    ]


def _labels(worth: Estimate) -> str:
    return f"{worth.value:.1f} labels (95 % interval {worth.low:.1f} to {worth.high:.1f})"


def _score(found: Estimate, metric: str) -> str:
    percent = " %" if is_share(metric) else ""
    value, low, high = (score(number, metric) for number in found)
    return f"{metric} {value}{percent} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class TuningRow:
    """A candidate of an arm."""

    arm: str
    settings: str
    score: str
    trials: str
    chosen: bool


def tuning_rows(summary: Summary) -> list[TuningRow]:
    """Return a row for each candidate."""
    return [
        TuningRow(
            arm=tried.arm,
            settings=_changes(tried.changes),
            score=score(tried.score, summary.metric),
            trials=f"{tried.n_finished} of {tried.n_planned}",
            chosen=tried.chosen,
        )
        for tried in (summary.tuning.candidates if summary.tuning else ())
    ]


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
    text = f"{score(chosen.score, metric)} with {_changes(chosen.changes)}"
    if chosen.number != 0:
        text += f"; initial settings {score(of_arm[0].score, metric)}"
    rest = sorted(t.score for t in of_arm if t.number and not t.chosen and t.score is not None)
    if len(rest) == 1:
        text += f"; another {score(rest[0], metric)}"
    elif rest:
        text += f"; {len(rest)} others {score(rest[0], metric)} to {score(rest[-1], metric)}"
    return text


def _changes(changes: dict[str, Any]) -> str:
    if not changes:
        return "initial settings"
    return ", ".join(
        f"{key.removeprefix('settings.')} {value}" for key, value in sorted(changes.items())
    )
