import math

import pytest
import torch
from torch import nn

from conftest import digits_task
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.regions.multitask_mask import MultitaskMask, MultitaskMaskSettings
from reduced import losses_of


def build(bias: float = 0.0, **settings: object) -> MultitaskMask:
    task = digits_task()
    method = MultitaskMask(task.network(), task, MultitaskMaskSettings.parse(settings, "settings"))
    last = method.decoder.layers[-1]
    assert isinstance(last, nn.Conv2d)
    nn.init.zeros_(last.weight)
    assert last.bias is not None
    nn.init.constant_(last.bias, bias)
    return method.train()


def a_batch() -> Batch:
    """A quarter of the first image is the object; the second has no x*."""
    mask = torch.zeros(2, 1, 24, 24)
    mask[0, :, :12, :12] = 1
    x = torch.full((2, 1, 24, 24), 0.5)
    return Batch(x, torch.tensor([0, 1]), mask, torch.tensor([True, False]))


def test_cross_entropy_of_a_mask() -> None:
    # log 3 is a probability of 3/4, right on a quarter of the pixels
    expected = 0.1 * -(0.25 * math.log(0.75) + 0.75 * math.log(0.25))
    parts = losses_of(build(bias=math.log(3)), a_batch()).parts
    assert parts["mask"].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("site", "sizes"),
    [(None, [(6, 6), (12, 12), (24, 24)]), ("trunk.site1", [(24, 24)])],
)
def test_the_decoder_goes_back_through_the_sizes_of_the_student(
    site: str | None, sizes: list[tuple[int, int]]
) -> None:
    enlarged = [m.size for m in build(site=site).decoder.layers if isinstance(m, nn.Upsample)]
    assert enlarged == sizes


def test_a_site_without_a_map_is_refused() -> None:
    with pytest.raises(LupiError, match=r"'head\.drop1' is not a site with a map"):
        build(site="head.drop1")
