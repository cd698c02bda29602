import numpy as np

from lupi.data.images.digits import DigitsSettings, make_digits


def test_same_seed_same_images_other_seed_others() -> None:
    first = make_digits(DigitsSettings())
    make_digits.cache_clear()
    again = make_digits(DigitsSettings())
    other = make_digits(DigitsSettings(data_seed=1))
    assert first is not again
    for a, b, c in zip(first, again, other, strict=True):
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.boxes, b.boxes)
        assert not np.array_equal(a.x, c.x)


def test_the_box_holds_the_digit() -> None:
    """Without clutter and noise, all ink is inside the box."""
    for images in make_digits(DigitsSettings(n_fragments=0, noise=0.0)):
        for x, (x0, y0, x1, y1) in zip(images.x[:50, 0], images.boxes[:50], strict=True):
            assert x[y0:y1, x0:x1].sum() == x.sum() > 0


def test_every_digit_is_in_one_split_only() -> None:
    """Recognise each digit by its pixels, where nothing else is in the image."""
    settings = DigitsSettings(n_fragments=0, noise=0.0)
    seen = [
        {
            p.x[i, 0, y0:y1, x0:x1].tobytes()
            for i, (x0, y0, x1, y1) in enumerate(p.boxes)
            if x1 - x0 == 12
        }
        for p in make_digits(settings)
    ]
    assert all(len(part) > 50 for part in seen)
    train, val, test = seen
    assert train.isdisjoint(val)
    assert train.isdisjoint(test)
    assert val.isdisjoint(test)


def test_sizes_and_types() -> None:
    train, val, test = make_digits(DigitsSettings())
    assert (len(train.y), len(val.y), len(test.y)) == (997, 600, 2000)
    assert train.x.shape == (997, 1, 24, 24)
    assert train.x.dtype == np.uint8
    assert set(test.y) == set(range(10))
