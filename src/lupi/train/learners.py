"""Methods and classical models by name: all that can be an arm."""

from lupi.classical.fitting import check_classical
from lupi.classical.models import CLASSICAL, Classical
from lupi.core import Method, Task
from lupi.errors import LupiError
from lupi.methods.registry import build_method, methods
from lupi.plugins import in_lupi_paper
from lupi.settings import Settings, unknown_name

Learner = type[Method] | type[Classical]


def learners() -> dict[str, Learner]:
    """Return all methods and classical models by name."""
    return {**methods(), **CLASSICAL}


def find_learner(name: str) -> Learner:
    """Return the method or classical model of this name."""
    if name not in learners():
        hint = in_lupi_paper("lupi.methods", name)
        raise LupiError(hint or unknown_name("method", name, list(learners())))
    return learners()[name]


def try_learner(name: str, settings: Settings, task: Task) -> None:
    """Raise an error if a method (built once to find out) or a model can't learn a task."""
    learner = find_learner(name)
    if issubclass(learner, Classical):
        check_classical(learner, task)
    else:
        build_method(name, settings, task.network(), task)
