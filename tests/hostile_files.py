"""Files that went wrong, as hypothesis draws them: bytes changed, or values of a document."""

import copy
import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lupi.errors import LupiError

N_EXAMPLES = int(os.environ.get("LUPI_FUZZ_EXAMPLES", "25"))
"""Of each fuzzer; more by `LUPI_FUZZ_EXAMPLES=10000 .venv/bin/python -m pytest tests/hostile`."""

fuzzed = settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize="LUPI_FUZZ_EXAMPLES" not in os.environ,  # the same in every run, unless asked for
    database=None,
    suppress_health_check=list(HealthCheck),
)

ROOM = 2**30
"""Bytes of address space that reading one input may take."""
SECONDS = 10
"""Of processor time for one input."""


class TooLongError(BaseException):
    """No `except Exception` of a reader catches it."""


@contextmanager
def answered(*told: type[Exception]) -> Iterator[None]:
    """Allow an answer, a `LupiError` or one of `told`, within bounded memory and time."""

    def stop(*_: object) -> None:
        raise TooLongError(f"more than {SECONDS} s of processor time")

    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    if _STATM.exists():
        taken = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, limits[1]))
    try:
        with suppress(LupiError, *told):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


_STATM = Path("/proc/self/statm")

HOSTILE_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    0.5,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../../etc",
    "/etc/passwd",
    "\0",
    "\ud800",
    "<script>",
    "[bold]",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"a": {"b": []}},
]


@st.composite
def damaged_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """Draw what is left of a file after some accidents, or something else altogether."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["flip", "cut", "insert", "repeat", "remove", "text"])):
            case "flip" if place < len(data):
                data[place] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[place:]
            case "insert":
                data[place:place] = draw(st.binary(min_size=1, max_size=20))
            case "repeat":
                data[place:place] = data[place : place + draw(st.integers(1, 200))]
            case "remove":
                del data[place : place + draw(st.integers(1, 200))]
            case "text":
                data[place:place] = draw(
                    st.sampled_from([b"\0", b'"', b"\n", b",", b"nan", b"1e999", b"-1", b"\xff"])
                )
    return bytes(data)


@st.composite
def changed_document(draw: st.DrawFn, document: Any) -> Any:
    """Draw a JSON document some of whose values are other ones, gone, or under another key."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(changed))
        if not places:
            break
        node, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(["replace", "replace", "remove", "rename", "swap"])):
            case "replace":
                node[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE_VALUES)))
            case "remove":
                del node[key]
            case "rename" if isinstance(node, dict):
                node[draw(st.sampled_from(["x", "", "format", str(key).upper()]))] = node.pop(key)
            case "swap":
                other, its_key = draw(st.sampled_from(places))
                node[key] = copy.deepcopy(other[its_key]) if its_key in _keys(other) else None
    return changed


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in _keys(node):
        yield node, key
        yield from _places(node[key])


def _keys(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node)
    return list(range(len(node))) if isinstance(node, list) else []


def as_json(document: Any) -> bytes:
    """Write a document as a hostile program would, numbers that are none included."""
    return json.dumps(document).encode("utf-8", "surrogatepass")
