import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from lupi.verdict.labels import isotonic, label_saving
from lupi.verdict.statistics import p_above_zero

SIZES = [100, 200, 400]
LINE = [0.5, 0.6, 0.7]  # straight in log n: +0.1 per doubling


def seeds(row: list[float], spread: float = 0.0) -> list[list[float]]:
    """Six seeds of a learning curve, with mean `row`."""
    return [[value + spread * k for value in row] for k in (-3, -2, -1, 1, 2, 3)]


def test_a_curve_one_doubling_ahead_saves_a_factor_of_two() -> None:
    for size, score in ((100, 0.6), (200, 0.7)):
        found = label_saving("plain", SIZES, seeds(LINE), [score] * 6, size)
        assert found.reach == "measured"
        assert found.factor == pytest.approx(2.0)


def test_a_curve_that_is_straight_in_log_n_is_interpolated_so() -> None:
    found = label_saving("plain", SIZES, seeds(LINE), [0.65] * 6, 100)
    assert found.factor == pytest.approx(2 * np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("spacing", [2, 4, 8])
@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.8])
def test_wide_gaps_between_sizes_do_not_inflate_the_factor(spacing: int, exponent: float) -> None:
    """Straight lines in log n gave 1.13 times the factor at sizes 4x apart, 1.3 at 8x."""
    sizes = [50 * spacing**k for k in range(3)]
    curve = [0.9 - 2 * n**-exponent for n in sizes]
    needed = sizes[0] * np.sqrt(spacing) * spacing  # halfway in log n between the larger two
    score = 0.9 - 2 * needed**-exponent
    found = label_saving("plain", sizes, seeds(curve), [score] * 6, sizes[1])
    assert found.factor == pytest.approx(np.sqrt(spacing), rel=0.05)


def test_the_reference_saves_nothing_over_itself() -> None:
    table = np.array(seeds(LINE, spread=0.01))
    for column, size in enumerate(SIZES):
        found = label_saving("plain", SIZES, table, table[:, column], size)
        assert found.factor == pytest.approx(1.0)


def test_a_worse_arm_has_a_factor_below_one() -> None:
    assert label_saving("plain", SIZES, seeds(LINE), [0.6] * 6, 400).factor == pytest.approx(0.5)


def test_nothing_is_extrapolated() -> None:
    wiggle = np.linspace(-0.002, 0.002, 6)
    beyond = label_saving("plain", SIZES, seeds(LINE), 0.71 + wiggle, 200)
    assert (beyond.reach, beyond.factor) == ("beyond range", None)
    assert beyond.interval == (2.0, None)  # 400 labels were not enough: at least 2x
    below = label_saving("plain", SIZES, seeds(LINE), 0.49 + wiggle, 200)
    assert (below.reach, below.factor) == ("below range", None)
    assert below.interval == (0.0, 0.5)  # 100 labels were more than enough: at most 0.5x


def test_on_a_flat_part_the_smallest_n_counts() -> None:
    found = label_saving("plain", SIZES, seeds([0.5, 0.6, 0.6]), [0.6] * 6, 100)
    assert found.factor == pytest.approx(2.0)
    flat = label_saving("plain", SIZES, seeds([0.6, 0.6, 0.6]), [0.6] * 6, 100)
    assert flat.factor == pytest.approx(1.0)


def test_a_curve_that_falls_is_pooled() -> None:
    # 0.7 and 0.5 pool to 0.6 at n = 200 and n = 400.
    found = label_saving("plain", SIZES, seeds([0.5, 0.7, 0.5]), [0.6] * 6, 100)
    assert found.factor == pytest.approx(2.0)


def test_isotonic_agrees_with_scipy() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6))
    for row in rows:
        np.testing.assert_allclose(isotonic(row), isotonic_regression(row).x, atol=1e-12)


def test_interval_surrounds_the_factor_and_narrows_with_seeds() -> None:
    rng = np.random.default_rng(1)
    widths = []
    for n_seeds in (6, 60):
        reference = np.array([0.3, 0.4, 0.5, 0.6]) + rng.normal(0, 0.02, (n_seeds, 4))
        arm = 0.45 + rng.normal(0, 0.02, n_seeds)
        found = label_saving("plain", [50, 100, 200, 400], reference, arm, 100)
        assert found.factor is not None
        assert found.interval is not None
        low, high = found.interval
        assert high is not None
        assert low < found.factor < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_seeds_are_paired() -> None:
    # A seed that helps both arms alike moves both curves, and the factor stays about 2.
    table = np.array(seeds(LINE, spread=0.05))
    own = np.linspace(-0.002, 0.002, len(table))
    found = label_saving("plain", SIZES, table, table[:, 0] + 0.1 + own, 100)
    assert found.interval == pytest.approx((2.0, 2.0), rel=0.1)


def test_it_excludes_one_exactly_if_the_arms_differ_at_the_same_size() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        table = np.array(LINE) + rng.normal(0, 0.02, (8, 3))
        arm = table[:, 1] + rng.normal(0.02, 0.02, 8)
        saving = label_saving("plain", SIZES, table, arm, 200).interval
        assert saving is not None
        gain = arm - table[:, 1]
        better, worse = p_above_zero(np.stack([gain, -gain]))
        assert (saving[0] >= 1) == (better <= 0.025)
        assert (saving[1] is not None and saving[1] <= 1) == (worse <= 0.025)


def test_an_upper_end_beyond_range_is_open() -> None:
    arm = [0.60, 0.62, 0.64, 0.70, 0.74, 0.78]
    found = label_saving("plain", SIZES, seeds(LINE), arm, 100)
    assert found.reach == "measured"
    assert found.interval is not None
    low, high = found.interval
    assert 1.9 < low < 2.1
    assert high is None


def test_same_call_same_interval() -> None:
    arm = [0.60, 0.62, 0.64, 0.66, 0.61, 0.63]
    first, second = (label_saving("plain", SIZES, seeds(LINE, 0.01), arm, 100) for _ in range(2))
    assert first == second


def test_one_seed_has_no_interval() -> None:
    found = label_saving("plain", SIZES, [LINE], [0.6], 100)
    assert found.factor == pytest.approx(2.0)
    assert found.interval is None


def test_one_size_is_a_curve_of_one_point() -> None:
    assert label_saving("plain", [100], [[0.5]], [0.6], 100).reach == "beyond range"
    assert label_saving("plain", [100], [[0.5]], [0.4], 100).reach == "below range"
    assert label_saving("plain", [100], [[0.5]], [0.5], 100).factor == pytest.approx(1.0)


def test_wrong_shapes_and_numbers_are_rejected() -> None:
    with pytest.raises(ValueError, match="shape"):
        label_saving("plain", SIZES, [[0.5, 0.6]], [0.6], 100)
    with pytest.raises(ValueError, match="shape"):
        label_saving("plain", SIZES, np.empty((0, 3)), [], 100)
    with pytest.raises(ValueError, match="finite"):
        label_saving("plain", SIZES, [LINE], [np.nan], 100)
