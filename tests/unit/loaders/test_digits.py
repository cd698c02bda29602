import numpy as np
from sklearn.datasets import load_digits

from lupi.loaders.images.batches import Images
from lupi.loaders.images.digits import DIGITS, DigitsSettings, make_digits


def test_same_seed_same_images_other_seed_others() -> None:
    first = make_digits(DigitsSettings(), 0)
    make_digits.cache_clear()
    again = make_digits(DigitsSettings(), 0)
    others = make_digits(DigitsSettings(), 1), make_digits(DigitsSettings(data_seed=1), 0)
    assert first is not again
    for a, b, *changed in zip(first, again, *others, strict=True):
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.boxes, b.boxes)
        assert not any(np.array_equal(a.x, c.x) for c in changed)


def test_the_box_holds_the_digit() -> None:
    """Without clutter and noise, all ink is inside the box."""
    for images in make_digits(DigitsSettings(n_fragments=0, noise=0.0), 0):
        for x, (x0, y0, x1, y1) in zip(images.x[:, 0], images.boxes, strict=True):
            assert x[y0:y1, x0:x1].sum() == x.sum() > 0


def test_fragments_are_drawn_outside_of_the_box_too() -> None:
    images = make_digits(DigitsSettings(n_fragments=5, noise=0.0), 0)[0]
    ink = [x.sum() for x in images.x[:, 0].astype(int)]
    inside = [
        x[y0:y1, x0:x1].astype(int).sum()
        for x, (x0, y0, x1, y1) in zip(images.x[:, 0], images.boxes, strict=True)
    ]
    outside = np.array(ink) - inside
    assert (outside > 0).mean() > 0.95
    assert outside.mean() > 0.3 * np.mean(inside)


def _digits(images: Images) -> set[bytes]:
    """Recognise digits by their pixels, where nothing else is in the image."""
    boxes = enumerate(images.boxes.tolist())
    return {
        images.x[i, 0, y0:y1, x0:x1].tobytes() for i, (x0, y0, x1, y1) in boxes if x1 - x0 == 12
    }


def test_every_digit_is_in_one_part_only() -> None:
    settings = DigitsSettings(n_fragments=0, noise=0.0)
    train, val, test = (_digits(images) for images in make_digits(settings, 3))
    assert min(len(train), len(val), len(test)) > 50
    assert train.isdisjoint(val)
    assert train.isdisjoint(test)
    assert val.isdisjoint(test)


def test_each_seed_divides_the_digits_anew() -> None:
    settings = DigitsSettings(n_fragments=0, noise=0.0)
    tests = [_digits(make_digits(settings, seed)[2]) for seed in (0, 1)]
    shared = len(tests[0] & tests[1]) / len(tests[0])
    assert 0.05 < shared < 0.6  # 500 of 1797, seen in one of three sizes in most of the images
    assert tests[0] & _digits(make_digits(settings, 1)[0])


def test_sizes_and_types() -> None:
    train, val, test = make_digits(DigitsSettings(), 0)
    assert (len(train.y), len(val.y), len(test.y)) == (997, 600, 2000)
    assert train.x.shape == (997, 1, 24, 24)
    assert train.x.dtype == np.uint8
    assert set(test.y) == set(range(10))


def test_the_digits_are_those_of_scikit_learn() -> None:
    bundle = load_digits()
    with np.load(DIGITS) as file:
        assert np.array_equal(file["images"], bundle.images)
        assert np.array_equal(file["labels"], bundle.target)
