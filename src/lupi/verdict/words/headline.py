"""The verdict in one sentence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from lupi.records import Metric
from lupi.verdict.answer import Answer, ArmSummary, Cell, Difference, LabelSaving
from lupi.verdict.judging import Rule
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import is_out_of_100, is_share
from lupi.verdict.verdict import seeds_needed

MOST_INFORMATIVE_FIRST: tuple[Answer, ...] = get_args(Answer)

ABOUT_XSTAR: Mapping[Answer, str] = {
    "helps": "x* helps {arm}{where}: {numbers} over the strongest control",
    "hurts": "x* hurts {arm}{where}: {numbers} against the closest control",
    "worse than a control": "{arm} is worse than a control{where}: {numbers} against",
    "better than plain only": (
        "{arm} is better than the plain model{where}, but x* gets no credit: {numbers} against the "
        "strongest control"
    ),
    "practically the same": "x* makes practically no difference to {arm}{where}: {numbers} against",
    "no detectable difference": (
        "No detectable difference for {arm}{where}: {numbers} against the strongest control"
    ),
}
ABOUT_METHODS: Mapping[Answer, str] = {
    **ABOUT_XSTAR,
    "helps": "{arm} is better than every control{where}: {numbers} over the strongest",
    "hurts": "{arm} is worse than every control{where}: {numbers} against the closest",
    "better than plain only": (
        "{arm} is better than the reference{where}, but not better than every control: {numbers} "
        "against the strongest"
    ),
    "practically the same": "{arm} is practically the same{where}: {numbers} against",
}


def headline(
    arms: Sequence[ArmSummary],
    metric: Metric,
    reference: str,
    rule: Rule,
    n_planned: int,
    phrases: Mapping[Answer, str] = ABOUT_XSTAR,
    plain: str = "the plain model",
) -> str:
    """Return a sentence: which arm x* helped, at which sizes, by how much and how certainly.

    The sentence is about the arm with the most informative verdict, at the largest size with that
    verdict; this choice does not depend on the size of the effect. All numbers come from one
    comparison: the arm against its strongest control at that size.
    """
    candidates = [arm for arm in arms if is_candidate(arm)]
    if not candidates:
        return (
            "This comparison can't say whether x* helps: "
            "none of its arms trains with the real x* and predicts without it."
        )
    if not any(cell.n_seeds for arm in arms for cell in arm.cells):
        return f"No verdict yet: none of the {n_planned} planned runs has a score."
    word = next(w for w in MOST_INFORMATIVE_FIRST if any(_with(w, arm) for arm in candidates))
    arm = max(candidates, key=lambda arm: (len(_with(word, arm)), _total_gain(word, arm)))
    name = _name(word, arm, candidates)
    cells, n_run = _with(word, arm), sum(cell.verdict != "not run" for cell in arm.cells)
    where = f" at {len(cells)} of {n_run} sizes" if n_run > 1 else ""
    if word == "collapsed":
        sentence = (
            f"{name} collapsed{where}: its noise no longer depends on x*, so its score says "
            "nothing about x*"
        )
    elif word == "underpowered":
        sentence = f"Too few seeds to judge {name}: {_lacking(arms, rule)}"
    else:
        cell = cells[-1]
        sentence = phrases[word].format(arm=name, where=where, numbers=_gain(cell, metric))
        sentence += _details(word, cell, metric, {reference: plain}, rule)
    return sentence + _elsewhere(arm, word) + "."


def _details(word: Answer, cell: Cell, metric: Metric, names: Mapping[str, str], rule: Rule) -> str:
    """Return the rest of the sentence: the control, the size, the interval, the labels saved."""
    difference = cell.deciding
    assert difference is not None
    named = {
        "worse than a control": difference.other,
        "practically the same": difference.other,
    }.get(word, f"({difference.other})")
    at = f" at n = {cell.size}" if cell.size else ""
    text = f" {named}{at}, 95 % interval {interval_text(difference, metric)}"
    if word == "practically the same" and cell.margin is not None:
        text += f", within the margin of {_amount(cell.margin, metric)}"
    p_value = difference.p_value
    text += ", p < 0.001" if p_value < 0.001 else f", p = {p_value:.2g}"
    if word == "helps":
        text += _labels([cell.label_saving, cell.label_saving_strongest], names)
    if rule.design is not None and rule.design.is_whole_pool(cell.size):
        text += f"; true of {cell.scope}"
    return text


def _lacking(arms: Sequence[ArmSummary], rule: Rule) -> str:
    n_questions = sum(
        cell.verdict != "not run" for arm in arms if is_candidate(arm) for cell in arm.cells
    )
    share = rule.looks.first_share
    fewest, enough = seeds_needed(1, share), seeds_needed(n_questions, share)
    if n_questions == 1:
        return f"a verdict needs at least {fewest}"
    return (
        f"{enough} are enough for any of the {n_questions} questions (arms x sizes), "
        f"{fewest} if all answers are clear"
    )


def _name(word: Answer, arm: ArmSummary, candidates: Sequence[ArmSummary]) -> str:
    n_same = sum(1 for candidate in candidates if _with(word, candidate))
    if len(candidates) == 1:
        return arm.name
    return f"{arm.name} ({n_same} of {len(candidates)} arms with this verdict)"


def _total_gain(word: Answer, arm: ArmSummary) -> float:
    return sum(cell.deciding.mean for cell in _with(word, arm) if cell.deciding is not None)


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


def _elsewhere(arm: ArmSummary, told: Answer) -> str:
    """Return the sizes with another verdict, so that the sentence hides none."""
    rest = [(word, _with(word, arm)) for word in MOST_INFORMATIVE_FIRST if word != told]
    return "".join(
        f"; {word} at {at_sizes(c.size for c in cells)}" for word, cells in rest if cells
    )


def _with(word: Answer, arm: ArmSummary) -> list[Cell]:
    return [cell for cell in arm.cells if cell.verdict == word]


def at_sizes(sizes: Iterable[int]) -> str:
    """Return `n = 75, 150`."""
    return "n = " + ", ".join(str(size) for size in sizes)


def interval_text(difference: Difference, metric: Metric) -> str:
    """Return `+6.9 to +7.1`, or `+6.9 or more` if an end is open."""
    low, high = difference.interval
    if low is None or high is None:
        if low is None and high is None:
            return "open at both ends"
        end, words = (low, "or more") if low is not None else (high, "or less")
        assert end is not None
        return f"{signed(end, metric)} {words}"
    return f"{signed(low, metric)} to {signed(high, metric)}"


def _gain(cell: Cell, metric: Metric) -> str:
    assert cell.deciding is not None
    note = "" if metric.higher_is_better else " (+ is better)"
    return f"{signed(cell.deciding.mean, metric)} {_unit(metric)}{note}"


def _unit(metric: Metric) -> str:
    return f"points of {metric.name}" if is_share(metric.name) else f"in {metric.name}"


def _amount(value: float, metric: Metric) -> str:
    return f"{signed(value, metric).removeprefix('+')} {_unit(metric)}"


def signed(value: float, metric: Metric) -> str:
    """Format a difference; one that would round to zero gets an extra digit."""
    if is_share(metric.name):
        shown, text = 100 * value, f"{100 * value:+.1f}"
    else:
        shown, text = value, f"{value:+.1f}" if is_out_of_100(metric.name) else f"{value:+.3g}"
    if float(text) == 0:
        return f"{shown:+.1g}" if abs(shown) >= 1e-6 else "+0.0"
    return text
