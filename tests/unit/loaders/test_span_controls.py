import numpy as np
import pytest

from lupi.loaders.text.span_controls import (
    Region,
    control_regions,
    lexicon_regions,
)


def regions() -> list[Region]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(50):
        region = np.zeros(rng.integers(30, 60), np.float32)
        for start, length, value in ((3, 2, 1.0), (12, 5, 0.5), (25, 1, 1.0)):
            region[start : start + length] = value
        made.append(region)
    return made


REGIONS = regions()
LENGTHS = [len(region) for region in REGIONS]


def runs(region: Region) -> list[tuple[float, int]]:
    parts = np.split(region, np.flatnonzero(np.diff(region)) + 1)
    return sorted((float(part[0]), len(part)) for part in parts if part[0] > 0)


def test_real_is_untouched() -> None:
    assert control_regions(REGIONS, LENGTHS, "real", 0) == REGIONS


def test_shuffled_gives_another_texts_rationale_at_the_same_part_of_the_text() -> None:
    short, long = np.array([0, 1], np.float32), np.array([1, 1, 0, 0, 0, 0], np.float32)
    first, second = control_regions([short, long], [2, 6], "shuffled", 0)
    assert first.tolist() == [1, 0]
    assert second.tolist() == [0, 0, 0, 1, 1, 1]


def test_random_keeps_number_lengths_and_values_of_spans() -> None:
    moved = control_regions(REGIONS, LENGTHS, "random", 0)
    assert [region.sum() for region in moved] == [region.sum() for region in REGIONS]
    assert [len(region) for region in moved] == LENGTHS
    apart = [m for m in moved if len(runs(m)) == 3]  # others have spans side by side
    assert len(apart) > 25
    assert all(runs(m) == [(0.5, 5), (1.0, 1), (1.0, 2)] for m in apart)
    place = [np.flatnonzero(region).mean() / len(region) for region in moved]
    assert np.std(place) > 0.1


def test_random_places_may_touch_both_ends() -> None:
    one = [np.array([0, 0, 1], np.float32)] * 200
    starts = {int(np.argmax(region)) for region in control_regions(one, [3] * 200, "random", 0)}
    assert starts == {0, 1, 2}
    full = [np.ones(4, np.float32)]
    assert control_regions(full, [4], "random", 0)[0].tolist() == [1, 1, 1, 1]


def test_constant_is_the_mean_over_parts_of_the_text() -> None:
    halves = [np.array([1, 0], np.float32), np.array([0, 0, 1, 1], np.float32)]
    constant = control_regions(halves, [4, 2], "constant", 0)
    assert [region.tolist() for region in constant] == [[0.5] * 4, [0.5] * 2]


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_seeds_draw_their_own(control: str) -> None:
    first, again, other = (
        control_regions(REGIONS, LENGTHS, control, seed)  # type: ignore[arg-type]
        for seed in (0, 0, 1)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_lexicon_marks_its_words_everywhere() -> None:
    texts = [np.array([1, 2, 3, 2], np.int32)]
    assert lexicon_regions(texts, np.array([2]))[0].tolist() == [0, 1, 0, 1]
