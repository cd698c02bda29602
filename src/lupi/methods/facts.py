"""What methods and classical models say of themselves, read from their files.

A list of them takes no import of torch, which takes a second.
"""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import lupi
from lupi.plugins import plugins

_ROOT = Path(lupi.__file__).parent


class MethodFacts(NamedTuple):
    """The line of a method, or of a classical model, in a list."""

    name: str
    summary: str
    uses_xstar: bool
    sees_xstar_at_test: bool
    kinds: tuple[str, ...]
    """Of x* that it can use."""
    extends_student: bool = False


def list_facts() -> list[MethodFacts]:
    """Return what there is of each method by name, then of each classical model."""
    base = _classes(_ROOT / "core/method.py", {})
    methods: dict[str, dict[str, Any]] = {}
    for path in [*sorted((_ROOT / "methods").rglob("*.py")), *_plugin_files()]:
        methods |= _classes(path, {**base, **methods})
    found = sorted(_facts(methods), key=lambda facts: facts.name)
    return [*found, *_facts(_classes(_ROOT / "classical/models.py", {}))]


def _plugin_files() -> Iterator[Path]:
    for entry in plugins("lupi.methods").values():
        spec = find_spec(entry.module)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin)


def _classes(path: Path, known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the plain values that classes of a file have, by the name of the class."""
    classes: dict[str, dict[str, Any]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            inherited = [{**known, **classes}.get(base, {}) for base in bases]
            classes[node.name] = {k: v for values in inherited for k, v in values.items()}
            classes[node.name] |= dict(_values(node))
    return classes


def _values(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for line in node.body:
        if isinstance(line, ast.Assign):
            target, value = line.targets[0], line.value
        elif isinstance(line, ast.AnnAssign) and line.value is not None:
            target, value = line.target, line.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id in MethodFacts._fields:
            yield target.id, ast.literal_eval(value)


def _facts(classes: dict[str, dict[str, Any]]) -> Iterator[MethodFacts]:
    for values in classes.values():
        if values.keys() >= set(MethodFacts._fields) - set(MethodFacts._field_defaults):
            yield MethodFacts(**values)
