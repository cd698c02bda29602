"""The verdict in one sentence, for a reader who opens the report for the first time."""

from collections.abc import Iterable, Sequence

from lupi.evidence.answer import ArmSummary, Cell, Difference, LabelSaving, Word
from lupi.evidence.units import is_out_of_100, is_share
from lupi.evidence.verdict import is_candidate, seeds_needed
from lupi.records import Metric

MOST_TELLING_FIRST: tuple[Word, ...] = (
    "helps",
    "hurts",
    "no detectable difference",
    "collapsed",
    "underpowered",
)


def headline(arms: Sequence[ArmSummary], metric: Metric, reference: str, n_planned: int) -> str:
    """Say which arm x* helped, at which sizes, by how much and how sure that is.

    The sentence tells of the arm with the most telling verdicts, and of the largest size that got
    them: a choice that doesn't look at how large the effect is, so that it doesn't flatter it.
    """
    candidates = [arm for arm in arms if is_candidate(arm)]
    if not candidates:
        return (
            "This comparison can't say whether x* helps: "
            "none of its arms trains with the real x* and predicts without it."
        )
    if not any(cell.n_seeds for arm in arms for cell in arm.cells):
        return f"Nothing to say about x* yet: none of the {n_planned} planned runs has a score."
    word = next(w for w in MOST_TELLING_FIRST if any(_with(w, arm) for arm in candidates))
    arm = max(candidates, key=lambda arm: (len(_with(word, arm)), arm.xstar_frac))
    n_same = sum(1 for candidate in candidates if _with(word, candidate))
    name = arm.name
    if len(candidates) > 1:
        name += f" ({n_same} of {len(candidates)} arms with x* got this verdict)"
    cells = _with(word, arm)
    where = f" at {len(cells)} of {len(arm.cells)} sizes" if len(arm.cells) > 1 else ""
    sentence = {
        "helps": f"x* helps {name}{where}: ",
        "hurts": f"x* hurts {name}{where}: ",
        "no detectable difference": f"No detectable difference for {name}{where}: ",
        "collapsed": f"{name} collapsed{where}: ",
        "underpowered": f"Too few seeds to tell whether x* helps {name}: ",
    }[word]
    sentence += _reason(word, cells[-1], metric, reference, len(arm.cells))
    return sentence + _elsewhere(arm, word) + "."


def _reason(word: Word, cell: Cell, metric: Metric, reference: str, n_sizes: int) -> str:
    if word == "collapsed":
        return "its noise no longer depends on x*, so its score says nothing about x*"
    if word == "underpowered":
        return (
            f"every arm needs at least {seeds_needed(n_sizes)} finished seeds "
            f"for a verdict over {_sizes(n_sizes)}"
        )
    rival = reference if word == "hurts" else cell.strongest
    difference = next(d for d in cell.differences if d.other == rival)
    against = {"helps": "over the best control", "hurts": "against the plain model"}
    text = (
        f"{_measured(difference, metric)} {against.get(word, 'against the best control')} "
        f"({rival}) at n = {cell.size}"
    )
    if difference.interval is not None:
        low, high = (_signed(end, metric) for end in difference.interval)
        text += f", 95 % interval {low} to {high}"
    if cell.p_value is not None:
        text += ", p < 0.001" if cell.p_value < 0.001 else f", p = {cell.p_value:.2g}"
    return text + (_labels(cell.label_saving) if word == "helps" else "")


def _labels(saving: LabelSaving | None) -> str:
    if saving is not None and saving.reach == "beyond range":
        return "; the plain model reaches this score at no measured size"
    if saving is None or saving.factor is None:
        return ""
    text = f"; the plain model needs {saving.factor:.1f}x the labels"
    if saving.interval is None:
        return text
    low, high = saving.interval
    return text + f" ({low:.1f}x {'or more' if high is None else f'to {high:.1f}x'})"


def _elsewhere(arm: ArmSummary, told: Word) -> str:
    """Name the sizes that got another verdict, so that the sentence hides none."""
    rest = [(word, _with(word, arm)) for word in MOST_TELLING_FIRST if word != told]
    return "".join(
        f"; {word} at {at_sizes(c.size for c in cells)}" for word, cells in rest if cells
    )


def _with(word: Word, arm: ArmSummary) -> list[Cell]:
    return [cell for cell in arm.cells if cell.verdict == word]


def at_sizes(sizes: Iterable[int]) -> str:
    """Return `n = 75, 150`."""
    return "n = " + ", ".join(str(size) for size in sizes)


def _sizes(n_sizes: int) -> str:
    return "1 size" if n_sizes == 1 else f"{n_sizes} sizes"


def _measured(difference: Difference, metric: Metric) -> str:
    unit = f"points of {metric.name}" if is_share(metric.name) else f"in {metric.name}"
    note = "" if metric.higher_is_better else " (+ is better)"
    return f"{_signed(difference.mean, metric)} {unit}{note}"


def _signed(value: float, metric: Metric) -> str:
    if is_share(metric.name):
        return f"{100 * value:+.1f}"
    return f"{value:+.1f}" if is_out_of_100(metric.name) else f"{value:+.3g}"
