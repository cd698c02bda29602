"""What is measured, never how fast: machines differ."""

import pytest

from lupi.bench import measure

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
