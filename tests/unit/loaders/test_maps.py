"""Maps of a frozen network, cached."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.loaders.frozen import heard_by
from lupi.loaders.images.batches import ImageBatches, Images
from lupi.loaders.images.maps import MapImages, cached_maps, check_cropping
from lupi.loaders.images.windows import Cropping

N, SIDE = 5, 8
CROPPING = Cropping(SIDE, SIDE, flip=True)


@pytest.fixture
def images() -> Images:
    rng = np.random.default_rng(0)
    boxes = np.array([[i, 0, i + 1, 2] for i in range(N)])
    return Images(rng.integers(0, 255, (N, 3, SIDE, SIDE), dtype=np.uint8), np.arange(N), boxes)


def halves(x: Tensor) -> Tensor:
    """Two channels at half the resolution."""
    return torch.nn.functional.avg_pool2d(x, 2)[:, :2]


def shown(images: Images) -> ImageBatches:
    regions, has = images.regions(np.arange(N), "real", 0)
    return ImageBatches(images.y, CROPPING, regions, has)


def test_maps_are_computed_once(images: Images, tmp_path: Path) -> None:
    first = cached_maps(images, halves, "a", mirrored=True, folder=tmp_path)

    def fails(x: Tensor) -> Tensor:
        raise AssertionError("encoded again")

    again = cached_maps(images, fails, "a", mirrored=True, folder=tmp_path)
    assert np.array_equal(first.maps, again.maps)
    with pytest.raises(AssertionError, match="encoded again"):
        cached_maps(images, fails, "other weights", mirrored=True, folder=tmp_path)
    with pytest.raises(AssertionError, match="encoded again"):
        cached_maps(images, fails, "a", mirrored=False, folder=tmp_path)
    assert not list(tmp_path.glob(".*.tmp"))


def test_batches_have_maps_and_their_regions(images: Images) -> None:
    seen = cached_maps(images, halves, "a", mirrored=True, folder=None)
    batch = next(iter(seen.split(np.arange(N), shown(images)).batches(N)))
    x = torch.from_numpy(images.x).float() / 255
    assert torch.allclose(batch.x, halves(x), atol=1e-3)  # half precision
    assert batch.xstar is not None
    assert batch.xstar.shape == (N, 1, 4, 4)
    assert batch.xstar[3, 0].nonzero().tolist() == [[0, 1]]  # the pixels of column 3


def test_mirrored_maps_come_with_mirrored_regions(images: Images) -> None:
    seen = cached_maps(images, halves, "a", mirrored=True, folder=None)
    split = seen.split(np.arange(N), shown(images))
    x = torch.from_numpy(images.x).float() / 255
    plain, mirrored = halves(x), halves(x.flip(3))
    n_mirrored = 0
    for epoch in range(4):
        for batch in split.batches(2, torch.Generator().manual_seed(epoch)):
            assert batch.xstar is not None
            for maps, y, region in zip(batch.x, batch.y, batch.xstar, strict=True):
                is_mirrored = not torch.allclose(maps, plain[y], atol=1e-3)
                n_mirrored += is_mirrored
                column = (3 - int(y) // 2) if is_mirrored else int(y) // 2
                assert region[0].nonzero().tolist() == [[0, column]]
                if is_mirrored:
                    assert torch.allclose(maps, mirrored[y], atol=1e-3)
    assert 0 < n_mirrored < 4 * N


def test_statistics_are_of_the_given_rows(images: Images) -> None:
    seen: MapImages = cached_maps(images, halves, "a", mirrored=False, folder=None)
    mean, std = seen.mean_and_std(np.array([1, 3]))
    expected = torch.from_numpy(seen.maps[[1, 3], 0]).double()
    assert mean == pytest.approx(expected.mean((0, 1, 2)).tolist())
    assert std == pytest.approx(expected.std((0, 1, 2), correction=0).tolist())


def test_crops_are_refused() -> None:
    check_cropping(CROPPING, ten_crops=False)
    for cropping in (Cropping(10, 8), Cropping(8, 8, pad=1)):
        with pytest.raises(LupiError, match="whole images"):
            check_cropping(cropping, ten_crops=False)


def test_a_listener_hears_how_far_it_is(images: Images) -> None:
    heard: list[tuple[int, int]] = []
    with heard_by(lambda done, total: heard.append((done, total))):
        cached_maps(images, halves, "a", mirrored=True, folder=None)
    assert heard == [(1, 2), (2, 2)]  # batches
    n_heard = len(heard)
    cached_maps(images, halves, "a", mirrored=True, folder=None)
    assert len(heard) == n_heard


def test_batches_are_encoded_in_one_torch_thread_each(images: Images) -> None:
    """Threads inside torch, on a busy machine, take a hundred times as long."""
    used = []

    def counts(x: Tensor) -> Tensor:
        used.append(torch.get_num_threads())
        return halves(x)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        cached_maps(images, counts, "a", mirrored=True, folder=None)
        assert used == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
