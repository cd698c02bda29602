"""Settings: frozen models read from YAML plus `a.b=c` overrides, with errors that teach."""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from lupi.errors import LupiError


class Settings(BaseModel):
    """Base of all settings: frozen, typed, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def parse(cls, raw: Any, where: str) -> Self:
        """Validate `raw`; `where` is the key under which it stands, for the message."""
        if not isinstance(raw, Mapping):
            raise LupiError(f"{where}: expected keys and values, got {raw!r}")
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            lines = [_explain(cls, detail, where) for detail in error.errors()]
            raise LupiError("\n".join(lines)) from None

    def resolved(self) -> dict[str, Any]:
        """Return every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json")


def _explain(model: type[BaseModel], detail: ErrorDetails, where: str) -> str:
    loc = [str(part) for part in detail["loc"]]
    key = ".".join([where, *loc] if where else loc)
    if detail["type"] == "extra_forbidden":
        return unknown_key(key, loc[-1], _fields_at(model, loc[:-1]))
    if detail["type"] == "missing":
        return f"{key}: is required"
    return f"{key}: got {detail['input']!r}; {detail['msg'][0].lower()}{detail['msg'][1:]}"


def unknown_key(key: str, given: str, allowed: Sequence[str]) -> str:
    """Say that `given` is not a key, name the nearest right one, and list them all."""
    near = difflib.get_close_matches(given, allowed, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"{key}: no such key; {hint}Known here: {', '.join(sorted(allowed))}"


def unknown_name(what: str, given: str, known: Sequence[str]) -> str:
    """Say that no `what` is called `given`, and name the nearest and all known ones."""
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"no {what} is called `{given}`; {hint}Known: {', '.join(sorted(known))}"


def _fields_at(model: type[BaseModel], loc: Sequence[str]) -> list[str]:
    """Return the keys of the nested model that `loc` leads to."""
    for part in loc:
        field = model.model_fields.get(part)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a settings file."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LupiError(f"settings file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LupiError(f"settings file {path} can't be read: {error}") from None
    except yaml.YAMLError as error:
        raise LupiError(f"settings file {path} is not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise LupiError(f"settings file {path} must hold keys and values, got {raw!r}")
    return raw


def override(raw: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return a copy of `raw` with each `a.b=c` applied; c is read as YAML."""
    out: dict[str, Any] = json.loads(json.dumps(raw))
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise LupiError(f"--set takes key.path=value, got {assignment!r}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise LupiError(f"--set {assignment}: the value is not valid YAML") from None
        node = out
        for key in keys[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise LupiError(f"--set {assignment}: `{key}` is a value, it has no keys below it")
        node[keys[-1]] = value
    return out


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
