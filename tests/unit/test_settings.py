from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from lupi.errors import LupiError
from lupi.settings import Settings, fingerprint, merge, override, read_yaml


class Region(Settings):
    inside: float = 0.0
    outside: float


class Part(Settings):
    prior: float | Region = 1.0
    rate: float = Field(0.5, ge=0, le=1)


class Whole(Settings):
    parts: dict[str, Part] = {}  # noqa: RUF012  # pydantic copies it
    part: Part = Part()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"prt": {}}, "top.prt: no such key; did you mean `part`? Known here: part, parts"),
        (
            {"part": {"rat": 1}},
            "top.part.rat: no such key; did you mean `rate`? Known here: prior, rate",
        ),
        ({"parts": {"a": {"rat": 1}}}, "top.parts.a.rat: no such key; did you mean `rate`? "),
        (
            {"part": {"rate": 2}},
            "top.part.rate: got 2; input should be less than or equal to 1",
        ),
        (
            {"part": {"prior": {"insid": 1, "outside": 1}}},
            "top.part.prior.insid: no such key; did you mean `inside`? Known here: inside, outside",
        ),
        ({"part": {"prior": {}}}, "top.part.prior.outside: is required"),
        ({"part": {"prior": "big"}}, "top.part.prior: got 'big'; input should be a valid number"),
        ({"part": 3}, "top.part: got 3; input should be a valid dictionary"),
        ([], "top: expected keys and values, got []"),
    ],
)
def test_errors_name_the_key_and_the_remedy(raw: Any, message: str) -> None:
    with pytest.raises(LupiError) as raised:
        Whole.parse(raw, "top")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(LupiError) as raised:
        Whole.parse({"part": {"rate": 2}, "parts": {"a": {"rate": -1}}}, "")
    assert len(str(raised.value).splitlines()) == 2


def test_overrides_are_yaml_and_leave_the_original_alone() -> None:
    raw = {"train": {"lr": 0.1}, "sizes": [1]}
    changed = override(raw, ["train.lr=0.001", "sizes=[10, 20]", "new.deep=yes"])
    assert changed == {"train": {"lr": 0.001}, "sizes": [10, 20], "new": {"deep": True}}
    assert raw == {"train": {"lr": 0.1}, "sizes": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train", "--set takes key.path=value"),
        ("=3", "--set takes key.path=value"),
        ("a..b=1", "--set takes key.path=value"),
        ("sizes.x=1", "sizes.x: `sizes` is a value"),
        ("a=[1", "--set a="),
    ],
)
def test_bad_overrides(text: str, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        override({"sizes": [1]}, [text])


def test_merge_is_deep() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}}) == {
        "a": {"b": 9, "c": 2},
        "d": 3,
    }


def test_fingerprint_ignores_order_only() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1", "is not valid YAML"),
        (b"- 1", "must hold keys and values"),
        (b"\xff\xfe\x00", "can't be read"),
        (b"!!python/object/apply:os.getcwd []", "is not valid YAML"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_bytes(content)
    with pytest.raises(LupiError, match=message):
        read_yaml(path)
