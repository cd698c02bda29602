"""What is measured, never how fast: machines differ."""

import sys

import pytest

from lupi.bench import translation
from lupi.bench.images import measure
from lupi.errors import LupiError

KEYS = {"what", "name", "over", "ratio", "seconds", "seconds_over"}


@pytest.mark.usefixtures("small_bench")
def test_every_method_is_held_against_the_plain_one() -> None:
    rows = list(measure(["no-xstar", "oracle"], rounds=2, batch_size=2, threads=1))
    assert [(row["what"], row["name"], row["over"]) for row in rows] == [
        ("input", "a batch", "no-xstar"),
        ("training step", "no-xstar", "no-xstar"),
        ("student's inference", "no-xstar", "plain network"),
        ("training step", "oracle", "no-xstar"),
        ("student's inference", "oracle", "plain network"),
    ]
    for row in rows:
        assert row.keys() == KEYS
        assert min(row["ratio"], row["seconds"], row["seconds_over"]) > 0


@pytest.fixture
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lupi.bench.translation.N_UNITS", 8)
    monkeypatch.setattr("lupi.bench.translation.N_LINES", 60)
    monkeypatch.setattr("lupi.bench.translation.N_SEARCHED", 2)


@pytest.mark.usefixtures("few_sentences")
def test_methods_are_timed_on_sentences() -> None:
    rows = list(translation.measure(["imagination"], rounds=2, batch_size=4, threads=1))
    assert [(row["what"], row["unit"]) for row in rows] == [
        ("training step", "tokens"),
        ("beam search", "sentences"),
    ]
    assert all(row.keys() == KEYS | {"unit", "per_second"} for row in rows)


@pytest.mark.usefixtures("few_sentences")
def test_joeynmt_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joeynmt", None)
    with pytest.raises(LupiError, match=r"--against joeynmt: .* joeynmt==2\.3\.0"):
        next(translation.measure_joeynmt(rounds=2, batch_size=4, threads=1))


@pytest.mark.extra
@pytest.mark.usefixtures("few_sentences")
def test_joeynmt_is_timed() -> None:
    pytest.importorskip("joeynmt.model")
    rows = list(translation.measure_joeynmt(rounds=2, batch_size=4, threads=1))
    assert len(rows) == translation.N_JOEYNMT_ROWS
    assert {row["name"] for row in rows} == {"joeynmt"}
