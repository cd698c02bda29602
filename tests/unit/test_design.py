from pathlib import Path

import pytest

from lupi.design import Design
from lupi.errors import LupiError
from lupi.files import read_json, write_json
from lupi.records import Arm, Metric, read_comparison, write_comparison


def test_overlap_is_the_share_of_the_pool() -> None:
    design = Design(n_pool=400, test="fixed")
    assert [design.overlap(size) for size in (40, 200, 400, 500)] == [0.1, 0.5, 1.0, 1.0]
    assert [design.is_whole_pool(size) for size in (399, 400)] == [False, True]


def test_the_correlation_of_two_seeds_reaches_the_share_of_common_rows() -> None:
    """Small shares count by half; from a third on the bound holds that no arms can exceed."""
    design = Design(n_pool=1000, test="fixed")
    found = [design.correlation(size) for size in (10, 100, 200, 334, 600, 1000)]
    assert found == pytest.approx([0.00515, 0.065, 0.16, 0.334, 0.6, 0.0])
    assert Design(1000, "per-seed", n_test=500).correlation(100) == 0.25


@pytest.mark.parametrize(
    ("design", "size", "scope"),
    [
        (Design(400, "per-seed"), 100, "data like these"),
        (
            Design(400, "fixed", n_test=1200),
            100,
            "data like these, measured on one fixed set of 1,200 test rows",
        ),
        (
            Design(400, "fixed"),
            400,
            "this training set, measured on one fixed set of test rows",
        ),
        (Design(400, "per-seed", groups="patient"), 100, "new groups (patient) like these"),
        (Design(400, "per-seed", time="year"), 100, "later rows, in order of year"),
    ],
)
def test_the_scope_says_what_a_verdict_is_about(design: Design, size: int, scope: str) -> None:
    assert design.scope(size) == scope


def test_a_design_is_recorded_and_older_records_have_none(tmp_path: Path) -> None:
    design = Design(400, "per-seed", n_test=80, groups="patient")
    arms, metric = [Arm("no-xstar", "no-xstar")], Metric("accuracy")
    write_comparison(tmp_path, {"name": "x"}, arms, metric, [], design=design)
    assert read_comparison(tmp_path).design == design
    document = read_json(tmp_path / "comparison.json")
    document.pop("design")
    write_json(tmp_path / "comparison.json", document)
    assert read_comparison(tmp_path).design is None


def test_an_empty_pool_is_refused(tmp_path: Path) -> None:
    arms, metric = [Arm("no-xstar", "no-xstar")], Metric("accuracy")
    write_comparison(tmp_path, {"name": "x"}, arms, metric, [], design=Design(0, "fixed"))
    with pytest.raises(LupiError, match=r"design\.n_pool"):
        read_comparison(tmp_path)
