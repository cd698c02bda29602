"""Settings: frozen models read from YAML plus `a.b=c` overrides, with errors that teach."""

import difflib
import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from lupi.errors import LupiError
from lupi.plain_yaml import MAX_TEXT, load_plain


class Settings(BaseModel):
    """Base of all settings: frozen, typed, and closed to keys it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def parse(cls, raw: Any, where: str) -> Self:
        """Validate `raw`; `where` is the key under which it stands, for the message."""
        if not isinstance(raw, Mapping):
            raise LupiError(f"{where}: expected keys and values, got {shown(raw)}")
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            lines = [_explain(cls, detail, where) for detail in error.errors()]
            raise LupiError("\n".join(line for line in lines if line)) from None

    def resolved(self) -> dict[str, Any]:
        """Return every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json")


def _explain(model: type[BaseModel], error: ErrorDetails, where: str) -> str | None:
    """Say what is wrong with one key; None where another error of the same key says it better."""
    keys, fields, other = _follow(model, error["loc"], error["input"])
    if other:
        return None
    key = ".".join([where, *keys] if where else keys)
    if error["type"] == "extra_forbidden":
        return f"{key}: no such key; {_nearest(keys[-1], fields)}Known here: {_listed(fields)}"
    if error["type"] == "missing":
        return f"{key}: is required"
    return f"{key}: got {shown(error['input'])}; {error['msg'][0].lower()}{error['msg'][1:]}"


def _follow(
    model: type[BaseModel], loc: Sequence[int | str], given: Any
) -> tuple[list[str], list[str], bool]:
    """Follow an error's location through nested models.

    Return its keys, the keys known beside the last one, and whether the error is of an
    alternative (`float | Model`) that was not meant: a number for keys, or keys for a number.
    """
    keys: list[str] = []
    fields = list(model.model_fields)
    parts = list(loc)
    while parts:
        part = str(parts.pop(0))
        keys.append(part)
        if part not in fields:
            continue
        annotation = model.model_fields[part].annotation
        choices = get_args(annotation)
        is_union = get_origin(annotation) in (Union, UnionType)
        if is_union and parts:
            is_model_error = any(_is_model(c) and c.__name__ == parts[0] for c in choices)
            parts.pop(0)  # the name of the alternative
            if not is_model_error and isinstance(given, Mapping):
                return keys, fields, True
            if is_model_error and not parts and not isinstance(given, Mapping):
                return keys, fields, True
        if get_origin(annotation) is dict and parts:
            keys.append(str(parts.pop(0)))
        inner = next((c for c in (annotation, *choices) if _is_model(c)), None)
        if inner is None:
            break
        model, fields = inner, list(inner.model_fields)
    return keys + [str(part) for part in parts], fields, False


def shown(value: Any) -> str:
    """Write what was given, for a message: as Python writes it, and no more than fits there."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of NumPy
        value = value.item()
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 10


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def unknown_name(what: str, given: str, known: Sequence[str]) -> str:
    """Say that no `what` is called `given`, and name the nearest and all known ones."""
    return f"no {what} is called `{given}`; {_nearest(given, known)}Known: {_listed(known)}"


def _nearest(given: str, known: Sequence[str]) -> str:
    near = [name for name in known if name.startswith(given)]
    near = near or difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    return f"did you mean `{near[0]}`? " if near else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a settings file."""
    try:
        with path.open(encoding="utf-8") as file:
            raw = load_plain(file.read(MAX_TEXT + 1))
    except FileNotFoundError:
        raise LupiError(f"settings file {path} does not exist") from None
    except (OSError, ValueError) as error:
        raise LupiError(f"settings file {path} can't be read: {error}") from None
    if not isinstance(raw, dict):
        raise LupiError(f"settings file {path} must hold keys and values, got {shown(raw)}")
    return raw


def override(raw: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return a copy of `raw` with each `a.b=c` applied."""
    return assign(raw, read_changes(assignments))


def read_changes(assignments: Sequence[str]) -> dict[str, Any]:
    """Return values by the path of their setting from `a.b=c`; c is read as YAML."""
    changes: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not all(path.strip().split(".")):
            raise LupiError(f"--set takes key.path=value, got {assignment!r}")
        try:
            changes[path.strip()] = load_plain(text)
        except ValueError as error:
            raise LupiError(f"--set {assignment}: the value can't be read: {error}") from None
    return changes


def assign(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `raw` in plain types, with a value at each path such as `train.epochs`."""
    out: dict[str, Any] = _plain(raw)
    for path, value in _plain(changes).items():
        keys = path.split(".")
        if not all(keys):
            raise LupiError(f"{path!r} names no setting; expected key.path, such as train.epochs")
        node = out
        for key in keys[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise LupiError(f"{path}: `{key}` is a value, it has no keys below it")
        node[keys[-1]] = value
    return out


def _plain(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON knows them: paths are texts, numbers of NumPy are numbers."""

    def convert(value: Any) -> Any:
        if isinstance(value, PurePath):
            return str(value)
        if isinstance(value, Mapping):
            return dict(value)
        if hasattr(value, "tolist"):  # of NumPy or torch
            return value.tolist()
        raise LupiError(f"settings are numbers, texts, lists and keys with values; got {value!r}")

    plain: dict[str, Any] = json.loads(json.dumps(dict(raw), default=convert))
    return plain


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `change` laid over it, recursively."""
    out = dict(base)
    for key, value in change.items():
        old = out.get(key)
        nested = isinstance(value, Mapping) and isinstance(old, Mapping)
        out[key] = merge(old, value) if nested and old is not None else value
    return out


def fingerprint(resolved: Mapping[str, Any]) -> str:
    """Return the identity of resolved settings: 12 hex digits of their SHA-256."""
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
