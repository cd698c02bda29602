import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lupi.loaders.findings import Findings
from lupi.loaders.images import decode
from lupi.loaders.images.decode import (
    BadImageError,
    Fit,
    decode_image,
    view_window,
)
from lupi.loaders.images.index import Item
from lupi.loaders.images.regions import boxes_of, fit_mask, read_mask, stack_boxes
from made_images import save_image


def decode_mask(
    data: bytes, side: int, fit: Fit, size: tuple[int, int], values: Sequence[int] | None = None
) -> NDArray[np.uint8]:
    return fit_mask(read_mask(data, size, values), side, fit)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_a_image_keeps_its_colours() -> None:
    image = Image.new("RGB", (50, 40), (200, 100, 50))
    decoded = decode_image(encoded(image), 16, "crop")
    assert decoded.pixels.shape == (3, 16, 16)
    assert decoded.pixels[:, 8, 8].tolist() == [200, 100, 50]
    assert (decoded.width, decoded.height, decoded.converted) == (50, 40, None)


@pytest.mark.parametrize(
    ("image", "kind", "name", "expected"),
    [
        (Image.new("L", (20, 20), 90), "JPEG", "greyscale", (90, 90, 90)),
        (Image.new("CMYK", (20, 20), (0, 255, 255, 0)), "JPEG", "CMYK", (254, 0, 0)),
        (Image.new("RGBA", (20, 20), (255, 100, 0, 0)), "PNG", "RGBA", (0, 0, 0)),
        (Image.new("P", (20, 20), 0), "PNG", "palette", (0, 0, 0)),
        (Image.new("I;16", (20, 20), 65535 // 2), "PNG", "16-bit", (127, 127, 127)),
        (Image.new("1", (20, 20), 1), "PNG", "black and white", (255, 255, 255)),
    ],
)
def test_other_modes_become_rgb(
    image: Image.Image, kind: str, name: str, expected: tuple[int, int, int]
) -> None:
    decoded = decode_image(encoded(image, kind), 8, "crop")
    assert decoded.converted == name
    assert decoded.pixels[:, 4, 4].tolist() == pytest.approx(expected, abs=2)


def test_truncated_empty_and_foreign_files() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    whole = encoded(Image.fromarray(noise), "JPEG")
    with pytest.raises(BadImageError, match="truncated"):
        decode_image(whole[: len(whole) // 2], 32, "crop")
    for junk in (b"", b"hello"):
        with pytest.raises(BadImageError, match="unknown image format"):
            decode_image(junk, 32, "crop")


def test_too_many_pixels_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Image.new("RGB", (200, 200)))
    monkeypatch.setattr(decode, "MAX_PIXELS", 30_000)
    with pytest.raises(BadImageError, match="at most 30,000"):
        decode_image(data, 8, "crop")
    for limit in (30_000, 15_000):  # Pillow warns above its limit, and raises above twice that
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(BadImageError, match="decompression bomb"):
            decode_image(data, 8, "crop")


@pytest.mark.parametrize("fit", ["crop", "squash"])
@pytest.mark.parametrize("size", [(64, 64), (100, 60), (60, 100), (700, 500)])
def test_boxes_and_masks_stay_on_the_object(
    tmp_path: Path, fit: decode.Fit, size: tuple[int, int]
) -> None:
    width, height = size
    box = (width // 2, height // 4, width // 2 + width // 8, height // 2)
    save_image(tmp_path / "x.jpg", size, box)
    pixels = decode_image((tmp_path / "x.jpg").read_bytes(), 32, fit).pixels.astype(int)
    red = pixels[0] > pixels[2]  # (32, 32)
    x0, y0, x1, y1 = placed(box, size, fit)
    drawn = np.zeros((32, 32), dtype=bool)
    drawn[y0:y1, x0:x1] = True
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[box[1] : box[3], box[0] : box[2]] = 7
    decoded = decode_mask(encoded(Image.fromarray(mask)), 32, fit, size).astype(bool)
    for region in (drawn, decoded):
        assert (region & red).sum() / (region | red).sum() > 0.6
    assert drawn.sum() == pytest.approx(decoded.sum(), rel=0.5)


def placed(
    box: tuple[float, float, float, float], size: tuple[int, int], fit: decode.Fit
) -> tuple[int, ...]:
    """Return the box of an image in the pixels of a stored one, of 32 x 32."""
    image = decode.Decoded(np.zeros((3, 32, 32), np.uint8), *size, None)
    boxes = boxes_of(Item("a.png", "a", shapes=(box,)), image, fit, Findings("stop"))
    return tuple(stack_boxes(boxes, np.array([len(boxes)]), 1, 32)[0, 0].tolist())


def test_a_box_keeps_a_pixel_and_one_out_of_sight_is_empty() -> None:
    assert placed((0, 0, 64, 64), (64, 64), "crop") == (0, 0, 32, 32)
    assert placed((63, 63, 64, 64), (64, 64), "crop") == (31, 31, 32, 32)
    assert placed((10, 10, 10.2, 40), (64, 64), "crop") == (5, 5, 6, 20)
    assert view_window(100, 50, "crop") == (25, 0, 75, 50)
    assert placed((0, 0, 20, 50), (100, 50), "crop") == (0, 0, 0, 0)
    assert placed((0, 0, 50, 50), (100, 50), "crop") == (0, 0, 16, 32)


def test_the_values_of_an_object_may_be_named() -> None:
    trimap = np.full((16, 16), 2, dtype=np.uint8)
    trimap[:4], trimap[4:6] = 1, 3
    data = encoded(Image.fromarray(trimap))
    assert decode_mask(data, 16, "crop", (16, 16)).all()
    assert decode_mask(data, 16, "crop", (16, 16), [1]).sum() == 4 * 16
    assert decode_mask(data, 16, "crop", (16, 16), [1, 3]).sum() == 6 * 16
    coloured = encoded(Image.fromarray(trimap).convert("RGB"))
    with pytest.raises(BadImageError, match="mask_values need one value per pixel"):
        decode_mask(coloured, 16, "crop", (16, 16), [1])


def test_a_mask_must_have_the_images_size_and_thin_objects_stay() -> None:
    thin = np.zeros((64, 64), dtype=np.uint8)
    thin[:, 10] = 255
    data = encoded(Image.fromarray(thin))
    assert decode_mask(data, 16, "crop", (64, 64)).sum() == 16
    with pytest.raises(BadImageError, match=r"64 x 64 pixels, its image 32 x 32"):
        decode_mask(data, 16, "crop", (32, 32))
