"""Methods by name: every `Method` of a file in these folders, and those of plug-ins."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from torch import nn

import lupi.methods
from lupi.core import Method, Task
from lupi.errors import LupiError
from lupi.plugins import in_lupi_paper, load_plugin, plugins
from lupi.settings import Settings, unknown_name


@cache
def methods() -> dict[str, type[Method]]:
    """Return every method, by name."""
    found = {}
    for info in pkgutil.walk_packages(lupi.methods.__path__, "lupi.methods."):
        module = importlib.import_module(info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Method) and cls.__module__ == module.__name__:
                found[cls.name] = cls
    for name, entry in plugins("lupi.methods").items():
        found.setdefault(name, load_plugin(entry))
    return dict(sorted(found.items()))


def find_method(name: str) -> type[Method]:
    """Return the method of this name."""
    if name not in methods():
        hint = in_lupi_paper("lupi.methods", name)
        raise LupiError(hint or unknown_name("method", name, list(methods())))
    return methods()[name]


def build_method(
    name: str, settings: Settings | Mapping[str, Any], net: nn.Module, task: Task
) -> Method:
    """Build a method for a student, from the settings of this name."""
    cls = find_method(name)
    check_kind(cls, task)
    if not isinstance(settings, Settings):
        settings = cls.Settings.parse(settings, "settings")
    return cls(net, task, settings)


def check_kind(method: type[Method], task: Task) -> None:
    """Refuse a task whose x* the method can't use, or whose output it can't train."""
    if task.xstar_kind not in method.kinds:
        raise LupiError(
            f"method {method.name} can't use x* of kind {task.xstar_kind}; "
            f"it uses {', '.join(method.kinds)}"
        )
    if method.uses_xstar and task.places is not None and task.places not in method.places:
        raise LupiError(
            f"method {method.name} takes regions of {', '.join(method.places)}, but the regions of "
            f"this task are of {task.places}"
        )
    if method.uses_xstar and not task.xstar_dim:
        raise LupiError(
            f"method {method.name} uses x*, but this task has none: set task.xstar to its file"
        )
    if task.output_kind not in method.output_kinds:
        raise LupiError(
            f"method {method.name} can't train outputs of kind {task.output_kind}; "
            f"it trains {', '.join(method.output_kinds)}"
        )
