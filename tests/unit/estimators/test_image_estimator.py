"""`LupiImageClassifier`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from lupi import LupiError, LupiImageClassifier
from lupi.estimators.image import read_images, read_regions

SMALL: dict[str, Any] = {"network": "small-vgg", "pooling": "attention", "image_size": 24}


def spots(n: int = 40, side: int = 32) -> tuple[Any, Any, Any]:
    """Noise with a bright or a dark spot somewhere; the spot is the class."""
    rng = np.random.default_rng(0)
    images = rng.integers(100, 150, (n, side, side, 3)).astype(np.uint8)
    y, boxes = np.array(["bright", "dark"])[np.arange(n) % 2], []
    for i in range(n):
        x0, y0 = rng.integers(0, side - 8, 2)
        images[i, y0 : y0 + 8, x0 : x0 + 8] = 255 if y[i] == "bright" else 0
        boxes.append((x0, y0, x0 + 8, y0 + 8))
    return images, y, boxes


def test_it_learns_from_arrays_with_boxes_and_predicts_without() -> None:
    X, y, boxes = spots()
    model = LupiImageClassifier(**SMALL, random_state=0).fit(X, y, regions=boxes)
    assert model.method_ == "guided-attention"
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X[:3]).sum(1) == pytest.approx([1, 1, 1])
    assert LupiImageClassifier(**SMALL, epochs=1).fit(X, y).method_ == "no-xstar"


def test_a_channel_may_be_the_same_in_all_images() -> None:
    X, y, _ = spots()
    X[..., 2] = 0  # green and red only, as of two dyes
    fitted = LupiImageClassifier(**SMALL, epochs=1, random_state=0).fit(X, y)
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_files_are_predicted_like_arrays(tmp_path: Path) -> None:
    X, y, boxes = spots(12)
    paths = [tmp_path / f"{i}.png" for i in range(12)]
    for image, path in zip(X, paths, strict=True):
        Image.fromarray(image).save(path)
    model = LupiImageClassifier(
        image_size=32, pooling="both", epochs=1, random_state=0, val_frac=0
    ).fit(paths, y, regions=boxes)
    assert np.allclose(model.predict_proba(paths), model.predict_proba(X))


def test_it_works_with_clone_pipeline_and_grid_search() -> None:
    X, y, _ = spots(16)
    model = LupiImageClassifier(**SMALL, epochs=1, random_state=0)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(Pipeline([("model", model)]), {"model__dropout": [0.0, 0.3]}, cv=2)
    assert search.fit(X, y).predict(X[:2]).shape == (2,)


def test_regions_are_boxes_masks_or_missing() -> None:
    mask = np.zeros((10, 20))
    mask[3, 17] = 255
    given = [None, (0, 0, 10, 5), [(0, 0, 2, 1), (18, 8, 20, 10)], mask, []]
    masks, has = read_regions(given, [(20, 10)] * 5, side=10)
    assert has.tolist() == [False, True, True, True, True]
    assert masks[1].sum() == 5 * 5
    assert masks[2, 0, 0] == masks[2, 9, 9] == 1
    assert masks[3].nonzero() == (np.array([3]), np.array([8]))
    assert masks[4].sum() == 0  # there is nothing to see
    with pytest.raises(LupiError, match="image 0 has shape"):
        read_regions([np.zeros((3, 3))], [(20, 10)], side=10)


def test_bad_images_are_named() -> None:
    with pytest.raises(LupiError, match="image 1 can't be read"):
        read_images([np.zeros((4, 4), np.uint8), np.zeros((4, 4))], 8)
    with pytest.raises(ValueError, match="sequence of images"):
        read_images("image.png", 8)
