"""Verdicts in sentences: a headline, advice, one exact sentence, notes and warnings.

All sentences about a verdict are generated here, from the judged arms alone, so the terminal, the
page, JSON and the model card can't contradict each other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import cast, get_args

from lupi.records import Metric
from lupi.verdict.results import ArmSummary, Cell, LabelSaving, Statement, Summary, XstarVerdict
from lupi.verdict.roles import is_candidate
from lupi.verdict.rule import Rule
from lupi.verdict.statistics import ALPHA
from lupi.verdict.units import (
    PERCENT,
    count,
    difference,
    interval,
    p_value,
    score_in_words,
    unit_in_words,
)

MOST_INFORMATIVE_FIRST: tuple[XstarVerdict, ...] = get_args(XstarVerdict)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement is about: one verdict, the arm that shows it best, and one of its cells."""

    word: XstarVerdict
    arm: ArmSummary
    cell: Cell
    """The largest size with that verdict; the mean over sizes if no size has it."""
    n_same: int
    """Number of arms with this verdict, among those with x*."""
    n_arms: int
    """Number of arms with x*."""


def statement(
    arms: Sequence[ArmSummary],
    metric: Metric,
    reference: str,
    rule: Rule,
    progress: str = "",
    about_xstar: bool = True,
    confirmation: Summary | None = None,
) -> Statement:
    """Return the verdict in words.

    The sentences are about the arm with the most informative verdict, at the largest size with that
    verdict; this choice does not depend on the size of the effect.

    Args:
        arms: The judged arms.
        metric: The metric.
        reference: Name of the plain arm.
        rule: The rule they were judged by.
        progress: Why the verdict is preliminary, such as `5 of 8 seeds`; empty if it is not.
        about_xstar: Whether arms are judged for x*; otherwise for themselves (`lupi.judge`).
        confirmation: Fresh seeds for the arm that helps and its controls, judged.
    """
    if not any(cell.n_seeds for arm in arms for cell in arm.cells):
        text = "No verdict yet: no planned run has a score."
        return Statement(text, "", text)
    found = find_subject(arms)
    if found is None:
        text = (
            "This comparison can't say whether x* helps: none of its arms trains with the real x* "
            "and predicts without it."
        )
        return Statement(text, "Recommended: add such an arm.", text)
    numbers = _Numbers(found.cell, {arm.name: arm for arm in arms}, metric, reference)
    headline, advice = _in_short(found, numbers, about_xstar)
    if progress:
        headline = f"Preliminary ({progress}). {headline}"
        advice = "Wait for the planned runs before you decide."
    exact = _exact(found, metric, reference, rule, about_xstar)
    is_confirmed = None
    if fresh := _on_fresh_seeds(found, confirmation):
        start = "Confirmed" if fresh.word == "helps" else "Not confirmed"
        seeds = count(fresh.cell.n_seeds, "fresh seed")
        exact += f" {start} on {seeds}: {_exact(fresh, metric, reference, rule, about_xstar)}"
        is_confirmed = fresh.word == "helps"
        if not is_confirmed and not progress:
            advice = "Recommended: do not rely on it; fresh seeds did not confirm it."
    notes = tuple(_notes(found, rule, about_xstar, is_confirmed))
    return Statement(headline, advice, exact, notes, is_confirmed)


def _on_fresh_seeds(found: Subject, confirmation: Summary | None) -> Subject | None:
    """Return the same question on fresh seeds; None if they have another one or are unfinished."""
    if confirmation is None or found.word != "helps":
        return None
    arms = {arm.name: arm for arm in confirmation.arms}
    is_finished = confirmation.n_finished == confirmation.n_planned
    wanted = [found.arm.name, *(d.other for d in found.cell.differences)]
    if not is_finished or any(name not in arms for name in wanted):
        return None
    arm = arms[found.arm.name]
    for cell in (*arm.cells, *([arm.overall] if arm.overall else [])):
        if (cell.size, cell.sizes) == (found.cell.size, found.cell.sizes):
            return Subject(cast(XstarVerdict, cell.verdict), arm, cell, 1, 1)
    return None


def find_subject(arms: Sequence[ArmSummary]) -> Subject | None:
    """Return what to speak of: the most informative verdict, and the arm that shows it best.

    None if no arm that can show that x* helps has planned runs.
    """
    candidates = [
        arm
        for arm in arms
        if is_candidate(arm) and any(cell.verdict != "not run" for cell in arm.cells)
    ]
    if not candidates:
        return None
    word = next(w for w in MOST_INFORMATIVE_FIRST if any(_with(w, arm) for arm in candidates))
    arm = max(candidates, key=lambda arm: (len(_with(word, arm)), _total_gain(word, arm)))
    same = [candidate for candidate in candidates if _with(word, candidate)]
    return Subject(word, arm, _with(word, arm)[-1], len(same), len(candidates))


def _with(word: XstarVerdict, arm: ArmSummary) -> list[Cell]:
    """Return the cells with this verdict; the mean over sizes only if no size has it."""
    cells = [cell for cell in arm.cells if cell.verdict == word]
    if not cells and arm.overall is not None and arm.overall.verdict == word:
        return [arm.overall]
    return cells


def _total_gain(word: XstarVerdict, arm: ArmSummary) -> float:
    return sum(cell.deciding.mean for cell in _with(word, arm) if cell.deciding is not None)


class _Numbers:
    """The numbers of a headline, over the seeds that an arm has in common with another."""

    def __init__(
        self, cell: Cell, arms: Mapping[str, ArmSummary], metric: Metric, reference: str
    ) -> None:
        self.cell, self.arms, self.metric, self.reference = cell, arms, metric, reference
        self.control = cell.deciding_control or reference

    def scores(self, other: str) -> tuple[str, str]:
        """Return the scores of the arm and of another one, on their common seeds."""
        sizes = self.cell.sizes or (self.cell.size,)
        cells = [cell for cell in self.arms[other].cells if cell.size in sizes]
        seeds = [seed for seed in self.cell.scores if all(seed in found.scores for found in cells)]
        if not seeds or not cells:
            return self._text(self.cell.mean), "no score"
        own = fmean(self.cell.scores[seed] for seed in seeds)
        return self._text(own), self._text(fmean(c.scores[s] for c in cells for s in seeds))

    def change(self) -> str:
        """Return `raises accuracy from 74.1 % to 79.9 %`, compared with the reference."""
        name = self.metric.name.removesuffix(PERCENT)
        verb = "raises" if self.metric.higher_is_better else "lowers"
        own, other = self.scores(self.reference)
        if own != other:
            return f"{verb} {name} from {other} to {own}"
        gain = self.cell.against(self.reference)
        assert gain is not None  # a claim was made about it
        return f"{verb} {name} by {difference(abs(gain.mean), self.metric.name)[1:]}, to {own}"

    def contest(self) -> str:
        """Return `ours reaches 79.9 %, noise 75.0 %`, for the deciding control."""
        own, other = self.scores(self.control)
        return f"{own}, against {other} for {self.control}"

    def is_usable(self, name: str) -> bool:
        """Whether anyone would use this arm: not if its x* is replaced."""
        return self.arms[name].control == "real"

    def _text(self, mean: float | None) -> str:
        return "no score" if mean is None else score_in_words(mean, self.metric.name)


def _in_short(found: Subject, numbers: _Numbers, about_xstar: bool) -> tuple[str, str]:
    """Return what was found and what to do about it, for a reader in a hurry."""
    arm, cell, control, reference = found.arm.name, found.cell, numbers.control, numbers.reference
    what, credit = (f"x* ({arm})", "x*") if about_xstar else (arm, arm)
    absent = ", ".join(cell.absent)
    match found.word:
        case "helps":
            text = f"{what} {numbers.change()}. {_explained(numbers)}"
            if hurt := [other.size for other in found.arm.cells if other.verdict == "hurts"]:
                text += f" It hurts at {at_sizes(hurt)}."
            advice = f"use {arm}"
        case "hurts":
            text = f"{what} makes things worse: {numbers.contest()}, the closest control."
            advice = f"use {reference}"
        case "worse than a control":
            text = f"{arm} is worse than a control: {numbers.contest()}."
            advice = f"do not use {arm}"
            advice += f"; {control} is better" if numbers.is_usable(control) else ""
        case "better than plain only" if absent:
            text = (
                f"{arm} {numbers.change()}, but {credit} gets no credit: it was not compared with "
                f"{absent}."
            )
            advice = f"run {absent} with the same seeds"
        case "better than plain only":
            text = (
                f"{arm} {numbers.change()}, but {credit} gets no credit: a control may be as good "
                f"({numbers.scores(control)[1]} for {control})."
            )
            simpler = control if numbers.is_usable(control) else reference
            advice = f"use {simpler} if that is simpler, or {_add_seeds(about_xstar)}"
        case "practically the same":
            text = f"{what} makes practically no difference: {numbers.contest()}."
            advice = f"use {reference} if that is simpler"
        case "undecided":
            text = f"{_leaning(cell, what)}: {numbers.contest()}."
            advice = _more(cell, about_xstar)
        case "no detectable difference":
            text = (
                f"{what} made no detectable difference: {numbers.contest()}. This does not mean "
                "that there is none."
            )
            advice = "decide which gain matters, and add seeds"
            if about_xstar:
                advice = "plan the seeds for the smallest gain that matters (`lupi plan`)"
        case "underpowered":
            text = f"{arm} can't be judged: {cell.reason}."
            text += f" {_capital(_leaning(cell, what))}." if _leaning(cell, what) else ""
            advice = _more(cell, about_xstar)
        case "collapsed":
            text = f"{arm} collapsed: it no longer depends on x*, so its score says nothing of x*."
            advice = "change the settings of this arm and run it again"
        case _:
            text = f"{arm} was not compared: {cell.reason}."
            advice = f"run {reference} with the same seeds and sizes"
    where = _where(cell)
    is_phrase = text.startswith("it is ")
    return where + (_capital(text) if is_phrase and not where else text), f"Recommended: {advice}."


def _explained(numbers: _Numbers) -> str:
    """Return what the other controls say about the gain."""
    others = [d.other for d in numbers.cell.differences if d.other != numbers.reference]
    if not others:
        return "There is no other control."
    if numbers.control != numbers.reference:
        reached = numbers.scores(numbers.control)[1]
        return f"No control explains it: the closest, {numbers.control}, reaches {reached}."
    return f"It is not explained by {' or '.join(others)}."


def _leaning(cell: Cell, what: str) -> str:
    """Return `it is undecided whether x* (ours) helps, leaning yes`, or nothing."""
    if cell.outlook is None or cell.outlook.leaning is None:
        return ""
    verb = "helps" if what.startswith("x* (") else "is better"
    return f"it is undecided whether {what} {verb}, leaning {cell.outlook.leaning}"


def _add_seeds(about_xstar: bool) -> str:
    return "run the comparison with more seeds" if about_xstar else "add seeds"


def _more(cell: Cell, about_xstar: bool) -> str:
    n_more = cell.outlook.more_seeds if cell.outlook else None
    if n_more is None:
        return _add_seeds(about_xstar)
    return f"{_add_seeds(about_xstar)}: {count(n_more, 'more seed')} can settle it"


def _where(cell: Cell) -> str:
    if cell.sizes:
        return f"On average over {at_sizes(cell.sizes)}, "
    return f"With {count(cell.size, 'training row')}, " if cell.size else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# The exact sentence

ABOUT_XSTAR_EXACTLY: Mapping[XstarVerdict, str] = {
    "helps": "x* helps {arm}{where}: {numbers} over the closest control",
    "hurts": "x* hurts {arm}{where}: {numbers} against the closest control",
    "worse than a control": "{arm} is worse than a control{where}: {numbers} against",
    "better than plain only": (
        "{arm} is better than the plain model{where}, but x* gets no credit: {numbers} against the "
        "closest control"
    ),
    "practically the same": "x* makes practically no difference to {arm}{where}: {numbers} against",
    "undecided": "Undecided for {arm}{where}, leaning {leaning}: {numbers} against",
    "no detectable difference": (
        "No detectable difference for {arm}{where}: {numbers} against the closest control"
    ),
}
ABOUT_METHODS_EXACTLY: Mapping[XstarVerdict, str] = {
    **ABOUT_XSTAR_EXACTLY,
    "helps": "{arm} is better than every control{where}: {numbers} over the closest",
    "hurts": "{arm} is worse than every control{where}: {numbers} against the closest",
    "better than plain only": (
        "{arm} is better than the reference{where}, but not better than every control: {numbers} "
        "against the closest"
    ),
    "practically the same": "{arm} is practically the same{where}: {numbers} against",
}
NAMED: tuple[XstarVerdict, ...] = ("worse than a control", "practically the same", "undecided")
"""Verdicts whose phrase ends with the name of the control."""


def _exact(found: Subject, metric: Metric, reference: str, rule: Rule, about_xstar: bool) -> str:
    """Return one sentence whose numbers all come from one comparison."""
    word, arm, cell = found.word, found.arm, found.cell
    name = arm.name
    if found.n_arms > 1:
        name += f" ({found.n_same} of {found.n_arms} arms with this verdict)"
    n_run = sum(cell.verdict != "not run" for cell in arm.cells)
    where = f" at {len(_with(word, arm))} of {n_run} sizes" if n_run > 1 else ""
    if cell.sizes:
        where = f" on average over {at_sizes(cell.sizes)}"
    told = cell.deciding
    if word == "collapsed":
        text = f"{name} collapsed{where}: it no longer depends on x*"
    elif told is None or word in ("underpowered", "not compared"):
        text = f"{word.capitalize()}: {name}{where}: {cell.reason}"
    else:
        note = "" if metric.higher_is_better else " (+ is better)"
        phrases = ABOUT_XSTAR_EXACTLY if about_xstar else ABOUT_METHODS_EXACTLY
        text = phrases[word].format(
            arm=name,
            where=where,
            numbers=f"{difference(told.mean, metric.name)} {unit_in_words(metric.name)}{note}",
            leaning=cell.outlook.leaning if cell.outlook else None,
        )
        text += f" {told.other}" if word in NAMED else f" ({told.other})"
        text += f" at n = {cell.size}" if cell.size else ""
        text += f", 95 % interval {interval(told.interval, metric.name)}"
        if word == "practically the same" and cell.margin is not None:
            margin = difference(cell.margin, metric.name).removeprefix("+")
            text += f", within the margin of {margin} {unit_in_words(metric.name)}"
        shown = p_value(told.p_value)
        text += f", p {shown}" if shown.startswith("<") else f", p = {shown}"
        text += f", {count(told.n_pairs, 'seed')}"
        if word == "helps":
            savings = [cell.label_saving, cell.label_saving_control]
            text += _labels(savings, {reference: "the plain model"} if about_xstar else {})
        if cell.absent:
            text += f"; not compared with {', '.join(cell.absent)}"
        if cell.size and rule.design is not None and rule.design.is_whole_pool(cell.size):
            text += f"; holds for {cell.scope} only"
    return f"{text}{_elsewhere(arm, word)}."


def _labels(savings: Iterable[LabelSaving | None], names: Mapping[str, str]) -> str:
    """Return how many labels other arms need, and which arms never reach the score."""
    found = [(names.get(s.other, s.other), s) for s in savings if s is not None]
    text = "".join(
        f"; {other} needs {s.factor:.1f}x the labels{_factor_interval(s)}"
        for other, s in found
        if s.factor is not None
    )
    beyond = [other for other, s in found if s.reach == "beyond range"]
    if len(beyond) > 1:
        text += f"; neither {' nor '.join(beyond)} reaches this score at a measured size"
    elif beyond:
        text += f"; {beyond[0]} reaches this score at no measured size"
    return text


def _factor_interval(saving: LabelSaving) -> str:
    if saving.interval is None:
        return ""
    low, high = saving.interval
    return f" ({low:.1f}x {'or more' if high is None else f'to {high:.1f}x'})"


def _elsewhere(arm: ArmSummary, told: XstarVerdict) -> str:
    """Return the sizes with another verdict, so that the sentence hides none."""
    by_word = {
        word: [cell.size for cell in arm.cells if cell.verdict == word]
        for word in MOST_INFORMATIVE_FIRST
        if word != told
    }
    return "".join(f"; {word} at {at_sizes(sizes)}" for word, sizes in by_word.items() if sizes)


def _notes(
    found: Subject, rule: Rule, about_xstar: bool, is_confirmed: bool | None
) -> Iterator[str]:
    """Yield what the numbers can't say."""
    cell, word = found.cell, found.word
    n_seeds = min((d.n_pairs for d in cell.differences), default=0)
    is_clean = n_seeds > 0 and not cell.n_diverged + cell.n_collapsed
    if word in ("helps", "practically the same") and is_clean:
        rate = 100 * (1 - ALPHA ** (1 / n_seeds))
        yield (
            f"{count(n_seeds, 'seed')} without a failure can't exclude that up to {rate:.0f} % of "
            "runs fail"
        )
    reasons = []
    if word == "helps" and found.n_arms > 1:
        reasons.append(f"{found.arm.name} was chosen among {found.n_arms} arms by these scores")
    if word in ("helps", "hurts") and len(rule.looks.counts) > 1:
        reasons.append("the comparison could stop as soon as it was decided")
    if reasons and not is_confirmed:
        yield (
            f"the difference is probably overstated, because {' and '.join(reasons)}; "
            f"confirm it with fresh seeds{' (`lupi compare --confirm`)' * about_xstar}"
        )


def at_sizes(sizes: Iterable[int]) -> str:
    """Return `n = 75, 150`."""
    return "n = " + ", ".join(str(size) for size in sizes)
