import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lupi.errors import LupiError
from lupi.report.samples import OUTLINE, Album, read_album


def pixels(uri: str) -> NDArray[np.uint8]:
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)))


def album(path: Path, **changes: Any) -> Album:
    mask = np.zeros((2, 10, 10), dtype=np.uint8)
    mask[:, 2:6, 3:8] = 1
    arrays: dict[str, Any] = {
        "x": np.full((2, 10, 10), 50, dtype=np.uint8),
        "mask": mask,
        "label": np.array([3, 4]),
        "prediction": np.array([3, 5]),
        "variance/site": np.linspace(0.0, 1.0, 2 * 5 * 5, dtype=np.float32).reshape(2, 5, 5),
    }
    np.savez(path, allow_pickle=False, **{**arrays, **changes})
    return read_album(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "samples.npz"


def test_images_are_enlarged_without_smoothing(path: Path) -> None:
    checks = (np.indices((10, 10)).sum(axis=0) % 2 * 255).astype(np.uint8)
    sample = album(path, x=np.stack([checks, checks])).samples[0]
    shown = pixels(sample.image)
    assert shown.shape == (160, 160)
    assert np.array_equal(shown, np.kron(checks, np.ones((16, 16), dtype=np.uint8)))
    assert (sample.label, sample.prediction) == ("3", "3")


def test_the_box_is_outlined(path: Path) -> None:
    shown = pixels(album(path).samples[0].outlined)
    assert tuple(shown[32, 48]) == OUTLINE  # corner of the box, 16 times enlarged
    assert tuple(shown[95, 127]) == OUTLINE
    assert tuple(shown[31, 60]) == (0, 0, 0)
    assert tuple(shown[60, 80]) == (50, 50, 50)
    assert tuple(shown[10, 10]) == (50, 50, 50)


def test_a_box_that_fills_the_image_is_outlined_too(path: Path) -> None:
    shown = pixels(album(path, mask=np.ones((2, 10, 10), dtype=np.uint8)).samples[0].outlined)
    assert tuple(shown[0, 0]) == OUTLINE


def test_one_scale_for_all_maps_of_a_site(path: Path) -> None:
    found = album(path)
    (scale,) = found.scales
    assert (scale.site, scale.low, scale.middle, scale.high) == ("site", "0.000", "0.500", "1.000")
    first, second = (pixels(sample.maps[0]) for sample in found.samples)
    bar = pixels(scale.bar)
    assert first.shape == (160, 160, 3)
    assert tuple(first[0, 0]) == tuple(bar[0, 0]) == (68, 1, 84)
    assert tuple(second[-1, -1]) == tuple(bar[-1, -1]) == (253, 231, 37)


def test_what_is_not_finite_is_grey(path: Path) -> None:
    variances = np.full((2, 5, 5), 0.5)
    variances[0, 0, 0] = np.nan
    variances[0, 0, 1] = np.inf
    shown = pixels(album(path, **{"variance/site": variances}).samples[0].maps[0])
    assert tuple(shown[0, 0]) == tuple(shown[0, 40]) == (128, 128, 128)
    assert tuple(shown[-1, -1]) == (68, 1, 84)


def test_large_colour_images_shrink(path: Path) -> None:
    large = np.zeros((1, 600, 300, 3), dtype=np.uint8)
    mask = np.zeros((1, 600, 300), dtype=np.uint8)
    variances = np.ones((1, 5, 5))
    found = album(path, x=large, mask=mask, **{"variance/site": variances})
    assert pixels(found.samples[0].image).shape == (200, 100, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"x": np.zeros((2, 10), dtype=np.uint8)},
        {"mask": np.zeros((2, 5, 5), dtype=np.uint8)},
        {"label": np.array([], dtype=np.int64)},
        {"variance/site": np.zeros((1, 5, 5))},
    ],
)
def test_wrong_shapes_are_named(path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(LupiError, match=r"samples\.npz can't be shown as images"):
        album(path, **changes)


def test_pickles_are_not_opened(path: Path) -> None:
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(LupiError, match="pickle"):
        read_album(path)
