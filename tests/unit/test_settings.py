import os
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
    other: Part | None = None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"prt": {}}, "top.prt: no such key; did you mean `part`? Known here: other, part, parts"),
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
        ({"other": {"rate": 2}}, "top.other.rate: got 2; input should be less than or equal to 1"),
        ({"other": {"rat": 2}}, "top.other.rat: no such key; did you mean `rate`?"),
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


@pytest.mark.parametrize(
    "text",
    [
        "a: !!bool x",
        "a: !!int ''",
        "a: !!int x",
        "a: !!float x",
        "a: !!float ''",
        "a: !!timestamp x",
        "a: !!timestamp 2024-13-45",
        "a: !!binary é",
        "a: !!omap x",
        "a: !!set x",
        "a: !!python/object:os.system x",
        "a: 2024-01-01",
        "a: !!int 1:1",
        f"a: !!int {'9' * 5000}",
        f"a: !!float {'1:' * 100_000}1",
    ],
)
def test_a_value_that_its_tag_does_not_fit_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(LupiError, match="can't be read") as refused:
        read_yaml(tmp_path / "a.yaml")
    assert "NoneType" not in str(refused.value)
    with pytest.raises(LupiError, match="can't be read"):
        override({}, [f"a={text.removeprefix('a: ')}"])


def test_times_are_texts_and_numbers_have_a_limit(tmp_path: Path) -> None:
    long = f"1{':1' * 200_000}"
    (tmp_path / "a.yaml").write_text(
        f"a: 12:30\nb: {long}\nc: {'9' * 300_000}\nd: [1, -2, 0, 0x1f, 1_000, 0.5, -.5, 1.5e+3]\n"
    )
    read = read_yaml(tmp_path / "a.yaml")
    assert read["a"] == "12:30"
    assert read["b"] == long
    assert read["c"] == "9" * 300_000
    assert read["d"] == [1, -2, 0, 31, 1000, 0.5, -0.5, 1500.0]
    assert [type(value) for value in read["d"]] == [int] * 5 + [float] * 3


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    with (tmp_path / "sparse.yaml").open("wb") as file:
        file.truncate(2**40)
    for name, message in (
        ("pipe", "a device, a pipe or a socket"),
        ("endless", "a device, a pipe or a socket"),
        ("sparse", "it is sparse"),
    ):
        with pytest.raises(LupiError, match=message):
            read_yaml(tmp_path / f"{name}.yaml")
