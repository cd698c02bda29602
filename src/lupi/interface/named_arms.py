"""Arms that a user chooses by name: arms of a comparison, or other methods."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.train.learners import learners
from lupi.verdict.roles import REFERENCE_METHOD


def chosen_arms(
    given: Sequence[str] | Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of the given arms.

    Args:
        given: Settings of all arms by name, or names of some. A name is that of a known arm, or of
            a method, which gets a shuffled control if it uses x*. The plain model is added if it is
            missing, as nothing could be compared without it.
        known: Settings of the known arms by name.
    """
    if isinstance(given, Mapping):
        return {name: _as_settings(arm) for name, arm in given.items()}
    names = [given] if isinstance(given, str) else list(given)
    chosen = {name: _named(name, known) for name in names}
    if any(arm["method"] == REFERENCE_METHOD for arm in chosen.values()):
        return chosen
    plain = next((key for key, arm in known.items() if arm["method"] == REFERENCE_METHOD), None)
    key = plain or REFERENCE_METHOD
    return {key: _named(key, known), **chosen}


def _as_settings(arm: Any) -> dict[str, Any]:
    return {"method": arm} if isinstance(arm, str) else dict(arm)


def _named(name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    if name in known:
        arm: dict[str, Any] = copy.deepcopy(dict(known[name]))
        return arm
    if name not in learners():
        raise LupiError(f"arms: {unknown_name('arm or method', name, [*known, *learners()])}")
    return {"method": name, **({"controls": ["shuffled"]} if _trains_with_xstar(name) else {})}


def _trains_with_xstar(name: str) -> bool:
    """Return whether a method uses x* in training and predicts without it."""
    learner = learners().get(name)
    return (
        learner is not None
        and learner.uses_xstar
        and not learner.sees_xstar_at_test
        and not learner.classical
    )


def with_fractions(arms: Mapping[str, Any], fractions: Sequence[float]) -> dict[str, Any]:
    """Return arms that use x* for several fractions of the training rows.

    Args:
        arms: Settings of the arms by name.
        fractions: Fractions of rows with x*; 0 is the plain model, which is there anyway.
    """
    wanted = sorted({fraction for fraction in fractions if fraction > 0})
    if not wanted or wanted[-1] > 1:
        raise LupiError(
            f"xstar_fracs: got {', '.join(f'{f:g}' for f in fractions) or 'nothing'}; expected "
            "fractions of the rows, such as 0.1,0.25,0.5,1"
        )

    varying = [name for name, arm in arms.items() if _trains_with_xstar(arm.get("method", ""))]
    if not varying:
        raise LupiError("xstar_fracs: no arm of this comparison uses x*; leave it out")
    return {**arms, **{name: {**arms[name], "xstar_fracs": wanted} for name in varying}}
