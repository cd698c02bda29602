"""The rules by which an arm is judged: what it must beat, and the word it gets per size.

x* gets credit only for what an arm gains over *every* control, so the test is an
intersection-union test (Berger 1982): its p is the largest of the paired p-values, which needs no
correction for the number of controls. Over the sizes p is Holm-corrected. Words, first that fits:

    collapsed                 half or more of the runs no longer depend on x*, whatever they scored
    helps                     better than every control, corrected p < alpha
    hurts                     worse than the reference, corrected p < alpha
    underpowered              no outcome with this many seeds could have reached p < alpha
    no detectable difference  everything else

Arms that can't show that x* helps (controls, arms without x*, oracles, classical models) are held
against the reference alone. A classical model is no control: it says nothing of x*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lupi.errors import LupiError
from lupi.evidence.answer import ArmSummary, Difference, Word
from lupi.evidence.paired import holm, smallest_p
from lupi.records import Arm

ALPHA = 0.05
REFERENCE_METHOD = "no-xstar"


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the verdict on one arm at one size rests on."""

    differences: tuple[Difference, ...]
    """Against every control that shares a seed with the arm."""
    n_pairs: int
    """The fewest seeds the arm shares with a control."""
    collapsed: bool = False


def find_reference(arms: Sequence[Arm]) -> Arm:
    """Return the plain arm that others are held against."""
    for arm in arms:
        if arm.method == REFERENCE_METHOD and arm.control == "real":
            return arm
    raise LupiError(
        f"the comparison has no plain model to hold others against; its arms are "
        f"{', '.join(arm.name for arm in arms) or 'none'}: "
        f"add one with method {REFERENCE_METHOD!r}"
    )


def is_candidate(arm: Arm | ArmSummary) -> bool:
    """Whether this arm can show that x* helps: it trains with the real x*, predicts without."""
    is_fair = not arm.sees_xstar_at_test and not arm.classical
    return arm.uses_xstar and arm.control == "real" and is_fair


def own_controls(arm: Arm, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms that repeat this one with x* replaced: `<arm>/shuffled` and the like."""
    return [
        other
        for other in arms
        if other.control != "real"
        and other.method == arm.method
        and other.name == f"{arm.name}/{other.control}"
    ]


def controls(arm: Arm, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms that this one is held against, the reference first."""
    reference = find_reference(arms)
    if not is_candidate(arm):
        return [] if arm == reference else [reference]
    without = [
        other
        for other in arms
        if not other.uses_xstar and not other.classical and other != reference
    ]
    own = [other for other in own_controls(arm, arms) if other.uses_xstar]
    return [reference, *without, *own]


def judge(grounds: Sequence[Grounds], reference: str) -> list[tuple[Word, float | None]]:
    """Return verdict and corrected p-value of one arm for each size.

    A size whose comparisons are incomplete keeps its place in Holm's correction with p = 1, so
    that an unfinished comparison gets no easier test than a finished one; and so does, for the
    question whether x* helps, a size at which the arm is not ahead of every control.
    """
    against_all = [_largest_p(at.differences) if at.n_pairs > 1 else None for at in grounds]
    ahead = [all(d.mean > 0 for d in at.differences) for at in grounds]
    in_favour = [p if first else None for p, first in zip(against_all, ahead, strict=True)]
    against_reference = [
        _largest_p([d for d in at.differences if d.other == reference]) for at in grounds
    ]
    verdicts = zip(
        grounds,
        against_all,
        _corrected(against_all),
        _corrected(in_favour),
        _corrected(against_reference),
        holm([smallest_p(at.n_pairs) for at in grounds]),
        strict=True,
    )
    words: list[tuple[Word, float | None]] = []
    for at, raw, p_all, p_helps, p_reference, best_p in verdicts:
        p_value = None if raw is None else p_all
        worse = any(d.other == reference and d.mean < 0 for d in at.differences)
        if at.collapsed:
            words.append(("collapsed", p_value))
        elif p_helps < ALPHA:
            words.append(("helps", p_value))
        elif p_reference < ALPHA and worse:
            words.append(("hurts", p_reference))
        elif best_p >= ALPHA:
            words.append(("underpowered", p_value))
        else:
            words.append(("no detectable difference", p_value))
    return words


def seeds_needed(n_sizes: int) -> int:
    """Return the fewest seeds with which Holm-corrected p < alpha can be reached at every size."""
    return next(n for n in range(1, 64) if n_sizes * smallest_p(n) < ALPHA)


def _largest_p(differences: Sequence[Difference]) -> float | None:
    """Return the p of the weakest comparison; None without any, or with too few seeds for one."""
    p_values = [d.p_value for d in differences if d.p_value is not None]
    return max(p_values) if p_values else None


def _corrected(p_values: Sequence[float | None]) -> list[float]:
    return holm([1.0 if p is None else p for p in p_values])
