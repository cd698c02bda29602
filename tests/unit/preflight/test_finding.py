"""Can a student find the region? A quick model on places, judged on rows it was not fitted to."""

import torch
from torch import Tensor

from lupi.core import Batch
from lupi.preflight.finding import find_region

N = 60


def images(mark: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noise with a square at a random place, brighter by `mark`, and its region."""
    generator = torch.Generator().manual_seed(seed)
    x, region = torch.rand(N, 1, 32, 32, generator=generator), torch.zeros(N, 1, 32, 32)
    for i, (top, left) in enumerate(torch.randint(0, 26, (N, 2), generator=generator).tolist()):
        region[i, :, top : top + 6, left : left + 6] = 1
    return (x + mark * region).clamp(0, 2), region


def batch(x: Tensor, region: Tensor) -> Batch:
    return Batch(x, torch.arange(len(x)) % 2, region, torch.ones(len(x), dtype=torch.bool))


def test_a_region_that_looks_different_is_found() -> None:
    found = find_region(batch(*images(mark=0.5)))
    assert found is not None
    assert found.is_found
    assert found.rank > 0.9
    assert "guided-attention" in str(found)


def test_a_region_that_looks_like_the_rest_is_not_found() -> None:
    found = find_region(batch(*images(mark=0.0)))
    assert found is not None
    assert not found.is_found


def test_the_same_place_in_every_image_needs_no_finding() -> None:
    x, region = torch.rand(N, 1, 32, 32), torch.zeros(N, 1, 32, 32)
    region[:, :, 8:16, 8:16] = 1
    found = find_region(batch(x, region))
    assert found is not None
    assert found.usual == 1.0
    assert not found.is_found


def test_words_are_found_by_what_they_are() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(5, 50, (N, 30), generator=generator)
    places = torch.randint(0, 30, (N, 1), generator=generator)
    x.scatter_(1, places, 1 + torch.arange(N)[:, None] % 4)
    x[:, 25:] = 0
    region = ((x > 0) & (x < 5)).float()[:, None]
    known = batch(x, region)
    found = find_region(known.select(region.flatten(1).any(1).nonzero()[:, 0]))
    assert found is not None
    assert found.is_found
    assert found.rank > 0.9


def test_numbers_of_vectors_say_nothing() -> None:
    x = torch.arange(1, 1 + N * 5).view(N, 5)
    region = torch.zeros(N, 1, 5)
    region[:, :, 0] = 1
    assert find_region(batch(x, region)) is None
