"""Settings: frozen models, read from YAML with `a.b=c` changes, and errors that say what to do."""

import difflib
import hashlib
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from lupi.errors import LupiError
from lupi.limits import read_regular

MAX_TEXT = 2**20
MAX_VALUES = 100_000
"""Aliases count as the values they expand to: ten lines may expand to a billion values."""


class Settings(BaseModel):
    """Base of all settings: frozen, typed, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
    varies_by: ClassVar[str] = ""
    """Key whose value chooses one of the `variants`, by default the first."""
    variants: ClassVar[Mapping[str, type["Settings"]]] = {}
    """Subclasses with further keys, by that value: a key without effect can't be written."""

    @classmethod
    def parse(cls, raw: Any, where: str) -> Self:
        """Return settings from raw values; `where` is their key, for messages."""
        if not isinstance(raw, Mapping):
            raise LupiError(f"{where}: expected keys and values, got {format_value(raw)}")
        chosen = raw.get(cls.varies_by, next(iter(cls.own_variants()), None))
        if isinstance(chosen, str) and chosen in cls.own_variants():
            parsed: Self = cls._parse_variant(chosen, raw, where)
            return parsed
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            lines = [_explain(cls, detail, where) for detail in error.errors()]
            text = "\n".join(line for line in lines if line)
            raise LupiError(text or f"{where}: {error}") from None

    @classmethod
    def _parse_variant(cls, chosen: str, raw: Mapping[str, Any], where: str) -> Any:
        variant = cls.own_variants()[chosen]
        for key in raw:
            if key not in variant.model_fields and key in cls.fields():
                choice = f"{cls.varies_by}: {chosen}"
                raise LupiError(f"{where}.{key}: has no effect with {choice}; remove it")
        return variant.parse(raw, where)

    @classmethod
    def own_variants(cls) -> Mapping[str, type["Settings"]]:
        """Return the variants of this class; a variant has none itself."""
        found: Mapping[str, type[Settings]] = vars(cls).get("variants", {})
        return found

    @classmethod
    def fields(cls) -> dict[str, FieldInfo]:
        """Return all fields, then those of variants only."""
        found = dict(cls.model_fields)
        for variant in cls.own_variants().values():
            found |= {key: v for key, v in variant.model_fields.items() if key not in found}
        return found

    def resolved(self) -> dict[str, Any]:
        """Return every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json")


class TaskSettings(Settings):
    """Base of the settings of a task: which data, and what they mean."""

    name: str
    """Name of the task. Each task allows its own only."""
    student_command: ClassVar[str | None] = None
    """Command that uses the students of this task, if `lupi export` can't export them."""

    def with_content(self) -> Self:
        """Return the settings with a fingerprint of the data as they are now, if files hold them.

        Data that have changed then make another run.
        """
        return self


def _explain(model: type[BaseModel], error: ErrorDetails, where: str) -> str | None:
    """Return a message about one key; None if another error of the same key says it better."""
    keys, fields, other = _follow(model, error["loc"], error["input"])
    if other:
        return None
    key = ".".join([where, *keys] if where else keys)
    if not keys:  # about several keys: the message names them
        said = error["msg"].removeprefix("Value error, ")
        return f"{where}: {said}" if where else said
    if error["type"] == "extra_forbidden":
        return f"{key}: no such key; {_nearest(keys[-1], fields)}Known here: {_listed(fields)}"
    if error["type"] == "missing":
        return f"{key}: is required"
    return f"{key}: got {format_value(error['input'])}; {error['msg'][0].lower()}{error['msg'][1:]}"


def _follow(
    model: type[BaseModel], loc: Sequence[int | str], given: Any
) -> tuple[list[str], list[str], bool]:
    """Follow an error's location through nested models.

    Return its keys, the known keys at the level of the last one, and whether the error is about
    an alternative of a union (`float | Model`) that the user did not mean.
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
        alternatives = [choice for choice in choices if choice is not type(None)]
        is_union = get_origin(annotation) in (Union, UnionType) and len(alternatives) > 1
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


def format_value(value: Any) -> str:
    """Return a value as Python writes it, shortened for a message."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of NumPy
        value = value.item()
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 10


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def unknown_name(what: str, given: str, known: Sequence[str]) -> str:
    """Return a message that no `what` is called `given`, with the nearest and all known names."""
    return f"no {what} is called `{given}`; {_nearest(given, known)}Known: {_listed(known)}"


def _nearest(given: str, known: Sequence[str]) -> str:
    near = [name for name in known if name.startswith(given)]
    near = near or difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    return f"did you mean `{near[0]}`? " if near else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' if "," in name else name for name in sorted(names)) or "none"


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a settings file."""
    try:
        raw = load_plain(read_regular(path, MAX_TEXT).decode("utf-8"))
    except FileNotFoundError:
        raise LupiError(f"settings file {path} does not exist") from None
    except (OSError, ValueError) as error:
        raise LupiError(f"settings file {path} can't be read: {error}") from None
    if not isinstance(raw, dict):
        raise LupiError(f"settings file {path} must hold keys and values, got {format_value(raw)}")
    return raw


def load_plain(text: str) -> Any:
    """Return the value of a YAML text; raise a ValueError that says what is wrong with it."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"it is longer than {MAX_TEXT:,} characters")
    try:
        value = yaml.load(text, _Loader)  # a SafeLoader
        json.dumps(value)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not valid YAML: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"{error}: write it as a text, in quotes") from None
    except (AttributeError, LookupError, ArithmeticError):
        # PyYAML's own errors for tags such as `!!bool x`
        raise ValueError("a value does not match its tag, such as !!bool or !!timestamp") from None
    return value


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(
        r"[-+]?(?:0b[01_]{1,99}|0[0-7_]{0,99}|0x[0-9a-fA-F_]{1,99}|[1-9][0-9_]{0,99})$"
    ),
    "tag:yaml.org,2002:float": re.compile(
        r"[-+]?(?:[0-9][0-9_]{0,99}\.[0-9_]{0,99}|\.[0-9][0-9_]{0,99})(?:[eE][-+][0-9]{1,9})?$"
        r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
    ),
}
"""Patterns of YAML 1.1 for up to 100 digits, without numbers of base 60."""


class _Loader(yaml.SafeLoader):
    """A safe loader that counts values; 12:30 is a text, not a number of base 60."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [
            (tag, _NUMBERS.get(tag, pattern))
            for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers[first]
        ]
        for first in yaml.SafeLoader.yaml_implicit_resolvers
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._n_values = 0
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a value and all values in it; an alias counts as what it expands to."""
        before = self._n_values
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if is_alias and node not in self._sizes:
            raise yaml.YAMLError("an alias contains itself")
        self._n_values += self._sizes[node] if is_alias else 1
        if self._n_values > MAX_VALUES:
            raise yaml.YAMLError(f"it expands to more than {MAX_VALUES:,} values")
        self._sizes.setdefault(node, self._n_values - before)
        if node.tag in _NUMBERS and (len(node.value) > 200 or ":" in node.value):
            raise yaml.YAMLError(f"{format_value(node.value)} is not a number")
        return node


def override(raw: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Return a copy of `raw` with each `a.b=c` applied."""
    return assign(raw, read_changes(assignments))


def read_changes(assignments: Sequence[str]) -> dict[str, Any]:
    """Return values by path from assignments `a.b=c`, where c is YAML."""
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
    """Return settings in the types of JSON: paths as strings, NumPy numbers as numbers."""

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
    """Return `base` updated by `change`, recursively."""
    out = dict(base)
    for key, value in change.items():
        old = out.get(key)
        nested = isinstance(value, Mapping) and isinstance(old, Mapping)
        out[key] = merge(old, value) if nested and old is not None else value
    return out


def fingerprint(resolved: Mapping[str, Any]) -> str:
    """Return 12 hex digits of the SHA-256 of resolved settings."""
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def derive_seed(seed: int, *purpose: Any) -> int:
    """Return a seed for one purpose, so that no two purposes share random numbers."""
    text = ":".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
