from lupi.report.training import Row, mean_curve, sites_with_variance


def test_mean_over_the_runs_that_got_there() -> None:
    short = [{"epoch": 1, "val": {"accuracy": 0.2}}]
    long = [{"epoch": 1, "val": {"accuracy": 0.4}}, {"epoch": 2, "val": {"accuracy": 0.6}}]
    curve = mean_curve([short, long, []], "val", "accuracy")
    assert curve is not None
    assert (curve.epochs, curve.means, curve.n_runs) == ([1, 2], [0.3, 0.6], 2)
    assert curve.moves


def test_rows_without_a_finite_number_are_left_out() -> None:
    rows: list[Row] = [
        {"epoch": 1, "val": {"accuracy": float("nan")}},
        {"epoch": 2, "val": None},
        {"epoch": 3, "val": {"accuracy": True}},
        {"val": {"accuracy": 0.5}},
    ]
    assert mean_curve([rows], "val", "accuracy") is None


def test_sites_keep_their_order() -> None:
    rows: list[Row] = [
        {"epoch": 1, "sites": {"b": {"variance_inside": 0.1}, "a": {"variance_inside": 0.1}}},
        {"epoch": 2, "sites": {"c": {"logvar_mean": 0.1}}},
        {"epoch": 3, "sites": None},
    ]
    assert sites_with_variance([rows]) == ["b", "a"]
