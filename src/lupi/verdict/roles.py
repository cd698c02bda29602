"""The roles of arms: reference, candidates and controls."""

from collections.abc import Sequence

from lupi.errors import LupiError
from lupi.records import Arm
from lupi.settings import unknown_name

REFERENCE_METHOD = "no-xstar"
MEAN = -1
"""Stands for the mean over all sizes, among sizes."""

Key = tuple[str, int]
"""An arm at a size, or over all sizes (`MEAN`)."""


def find_reference(arms: Sequence[Arm]) -> Arm:
    """Return the plain arm, with which others are compared."""
    for arm in arms:
        if arm.method == REFERENCE_METHOD and arm.control == "real":
            return arm
    raise LupiError(
        f"the comparison has no plain model to compare others with; its arms are "
        f"{', '.join(arm.name for arm in arms) or 'none'}: "
        f"add one with method {REFERENCE_METHOD!r}"
    )


def is_candidate(arm: Arm) -> bool:
    """Whether this arm can show that x* helps: it trains with the real x* and predicts without."""
    is_fair = not arm.sees_xstar_at_test and not arm.classical
    return arm.uses_xstar and arm.control == "real" and is_fair


def own_controls(arm: Arm, arms: Sequence[Arm]) -> list[Arm]:
    """Return the controls of this arm with replaced x*, such as `<arm>/shuffled`."""
    return [
        other
        for other in arms
        if other.control != "real"
        and other.method == arm.method
        and other.name == f"{arm.name}/{other.control}"
    ]


def controls(arm: Arm, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms to compare this one with, the reference first.

    Arms that can't show that x* helps (controls, arms without x*, oracles, classical models) are
    compared with the reference only. A classical model is no control: it says nothing about x*.
    """
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


def parse_questions(given: Sequence[str], arms: Sequence[str], sizes: Sequence[int]) -> list[Key]:
    """Return the arm and the size of each planned question.

    Args:
        given: Such as `ours@200`, `ours@mean` for the mean over sizes, or `ours` with one size.
        arms: Names of the arms with x*.
        sizes: Training-set sizes.
    """
    found = []
    for text in given:
        name, _, size = (text, "", str(sizes[0])) if text in arms else text.rpartition("@")
        if name not in arms:
            raise LupiError(f"questions: {text!r}: {unknown_name('arm', name or text, arms)}")
        if text == name and len(sizes) > 1:
            raise LupiError(f"questions: {text!r}: give the size, such as {text}@{sizes[0]}")
        if size not in (*map(str, sizes), "mean") or (size == "mean" and len(sizes) < 2):
            raise LupiError(f"questions: {text!r}: the sizes are {', '.join(map(str, sizes))}")
        found.append((name, MEAN if size == "mean" else int(size)))
    if len(set(found)) < len(found):
        raise LupiError(f"questions: expected each question once, got {', '.join(given)}")
    return found
