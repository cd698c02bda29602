import numpy as np
import pytest
import torch
from torch import Generator

from lupi.core import Batch, Control
from lupi.loaders.images.batches import ImageBatches, Images, ImageSplit
from lupi.loaders.images.windows import Cropping
from lupi.loaders.xstar.regions import box_mask

N, SIDE = 40, 16
RNG = np.random.default_rng(0)
START = RNG.integers(0, SIDE - 6, (N, 2, 2))
BOXES = np.concatenate([START, START + RNG.integers(2, 6, (N, 2, 2))], axis=2)
BOXES[::3, 1] = 0  # every third image has one box only
HAS = np.arange(N) % 4 != 0
MASKS = box_mask(torch.from_numpy(BOXES), SIDE, SIDE)[:, 0].byte().numpy()
X = np.repeat(MASKS[:, None] * 255, 3, axis=1)  # the image is white on the object
Y = np.arange(N)
BY_BOXES = Images(X, Y, BOXES, has_region=HAS)
BY_MASKS = Images(X, Y, BOXES[:, :0], masks=MASKS, has_region=HAS)
BOTH = pytest.mark.parametrize("images", [BY_BOXES, BY_MASKS], ids=["boxes", "masks"])


def batch_of(
    images: Images,
    control: Control = "real",
    seed: int = 0,
    cropping: Cropping | None = None,
    shuffle: Generator | None = None,
) -> Batch:
    rows = np.arange(N)
    regions, has = images.regions(rows, control, seed)
    cropping = cropping or Cropping(SIDE, SIDE)
    split = ImageSplit(images.x, rows, ImageBatches(images.y, cropping, regions, has))
    return next(split.batches(N, shuffle))


def masks(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    assert batch.xstar is not None
    assert batch.has_xstar is not None
    return batch.xstar, batch.has_xstar


@BOTH
def test_several_boxes_and_masks_lie_on_the_object(images: Images) -> None:
    batch = batch_of(images)
    xstar, has = masks(batch)
    assert torch.equal(xstar, batch.x[:, :1])
    assert has.tolist() == HAS.tolist()


@BOTH
def test_windows_act_on_image_and_region_alike(images: Images) -> None:
    cropping = Cropping(SIDE, 12, pad=3, flip=True)
    batch = batch_of(images, cropping=cropping, shuffle=Generator().manual_seed(3))
    again = batch_of(images, cropping=cropping, shuffle=Generator().manual_seed(3))
    xstar, _ = masks(batch)
    assert batch.x.shape == (N, 3, 12, 12)
    assert torch.equal(xstar, batch.x[:, :1])
    assert torch.equal(batch.x, again.x)
    unshuffled = batch_of(images, cropping=cropping)
    assert not torch.equal(batch.x[batch.y.argsort()], unshuffled.x)
    assert torch.equal(unshuffled.x, batch_of(images).x[..., 2:14, 2:14])


@BOTH
def test_a_row_whose_object_is_out_of_view_has_no_xstar(images: Images) -> None:
    xstar, has = masks(batch_of(images, cropping=Cropping(SIDE, 2)))
    empty = ~xstar.flatten(1).any(1)
    assert empty.any()
    assert torch.equal(has, torch.from_numpy(HAS) & ~empty)


@BOTH
def test_shuffled_gives_rows_with_x_star_that_of_another(images: Images) -> None:
    real, has = masks(batch_of(images))
    shuffled, shuffled_has = masks(batch_of(images, "shuffled"))
    assert torch.equal(has, shuffled_has)
    assert sorted(m.flatten().tolist() for m in real[has]) == sorted(
        m.flatten().tolist() for m in shuffled[has]
    )
    assert (real[has] != shuffled[has]).flatten(1).any(1).float().mean() > 0.9


@BOTH
def test_constant_is_the_same_for_all(images: Images) -> None:
    constant, has = masks(batch_of(images, "constant"))
    assert len(constant[has].unique(dim=0)) == 1
    assert 0 < constant[has].mean() < 1
    assert has.tolist() == HAS.tolist()


def test_the_constant_mask_is_the_mean_of_those_there_are() -> None:
    constant, _ = masks(batch_of(BY_MASKS, "constant"))
    assert constant[1, 0].numpy() == pytest.approx(MASKS[HAS].mean(0))


@BOTH
def test_random_has_the_sizes_of_the_real_ones(images: Images) -> None:
    real, has = masks(batch_of(images))
    random, random_has = masks(batch_of(images, "random"))
    other, _ = masks(batch_of(images, "random", seed=1))
    again, _ = masks(batch_of(images, "random"))
    assert torch.equal(has, random_has)
    assert torch.equal(random, again)
    assert not torch.equal(random, other)
    assert random[has].mean() == pytest.approx(real[has].mean().item(), rel=0.2)
    assert (random[has] != real[has]).flatten(1).any(1).float().mean() > 0.9


def test_a_moved_mask_keeps_its_area() -> None:
    areas = MASKS[HAS].sum((1, 2)).tolist()
    random, has = masks(batch_of(BY_MASKS, "random"))
    assert sorted(random[has].sum((1, 2, 3)).tolist()) == sorted(areas)


def test_ten_crops_of_a_split() -> None:
    split = ImageSplit(X, np.arange(N), ImageBatches(Y, Cropping(SIDE, 12), ten_crops=True))
    batch = next(split.batches(5))
    assert batch.x.shape == (5, 10, 3, 12, 12)
    assert torch.equal(batch.x[:, 4], torch.from_numpy(X[:5]).float()[..., 2:14, 2:14] / 255)
    assert batch.xstar is None


@BOTH
@pytest.mark.parametrize("seed", [None, 0])
def test_few_images_that_never_change_give_the_same_batches_as_many(
    images: Images, seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions, has = images.regions(np.arange(N), "real", seed=0)
    shown = ImageBatches(Y, Cropping(SIDE, SIDE), regions, has)

    def epoch() -> list[Batch]:
        shuffle = None if seed is None else Generator().manual_seed(seed)
        return list(ImageSplit(X, np.arange(N)[::-1].copy(), shown).batches(12, shuffle))

    few = epoch()
    monkeypatch.setattr("lupi.loaders.images.batches.MAX_VALUES", 1)
    for one, other in zip(few, epoch(), strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
        assert one.xstar is not None
        assert other.xstar is not None
        assert torch.equal(one.xstar, other.xstar)
