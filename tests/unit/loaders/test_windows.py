import pytest
import torch
from torch import Generator

from lupi.loaders.images.windows import Cropping


def numbered(n: int, side: int, channels: int = 1) -> torch.Tensor:
    """Images whose pixels say where they are; none is 0."""
    one = torch.arange(1, side * side + 1, dtype=torch.uint8).view(1, 1, side, side)
    return one.expand(n, channels, side, side).clone()


def test_without_anything_to_do_images_are_untouched() -> None:
    x = numbered(4, 8)
    same = Cropping(8, 8)
    generator = Generator().manual_seed(0)
    before = generator.get_state()
    assert same.cut(x, same.random(4, generator)) is x
    assert torch.equal(generator.get_state(), before)  # draws nothing


def test_the_centre() -> None:
    crop = Cropping(stored=8, size=4)
    out = crop.cut(numbered(2, 8, 3), crop.centre(2))
    assert torch.equal(out, numbered(2, 8, 3)[:, :, 2:6, 2:6])


@pytest.mark.parametrize("pad", [0, 3])
def test_every_window_is_a_part_of_its_image_with_a_black_border(pad: int) -> None:
    x = numbered(200, 10, 2)
    crop = Cropping(stored=10, size=8, pad=pad, flip=True)
    windows = crop.random(200, Generator().manual_seed(1))
    padded = torch.nn.functional.pad(x, (pad,) * 4)
    out = crop.cut(x, windows)
    for i, (top, left, mirrored) in enumerate(zip(*windows, strict=True)):
        y0, x0 = int(top) + pad, int(left) + pad
        expected = padded[i, :, y0 : y0 + 8, x0 : x0 + 8]
        assert expected.shape == (2, 8, 8)
        assert torch.equal(out[i], expected.flip(2) if mirrored else expected)
    assert {int(top) for top in windows.top} == set(range(-pad, 3 + pad))
    assert 60 < windows.mirrored.sum() < 140


def test_ten_crops_are_corners_and_middle_also_mirrored() -> None:
    x = numbered(1, 6)
    crop = Cropping(stored=6, size=4)
    corners = [crop.cut(x, windows)[0, 0] for windows in crop.ten(1)]
    starts = [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]
    for i, (top, left) in enumerate(starts):
        expected = x[0, 0, top : top + 4, left : left + 4]
        assert torch.equal(corners[i], expected)
        assert torch.equal(corners[i + 5], expected.flip(1))
