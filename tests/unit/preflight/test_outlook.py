"""What is expected of x* before the first run."""

import torch
from torch import Tensor

from lupi.core import Batch
from lupi.preflight import features, outlook
from lupi.preflight.data import check_data
from made_runs import task_from


def digits(n: int = 100) -> Batch:
    task = task_from({"name": "digits"}, {}).for_run(n, 0)
    return next(iter(task.splits(n, 0).train.batches(n)))


def table(y: Tensor, x: Tensor, xstar: Tensor) -> Batch:
    return Batch(x, y, xstar, torch.ones(len(y), dtype=torch.bool))


def draw(n: int = 300, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return two columns x, a column x*, and noise."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(n, k, generator=generator) for k in (2, 1, 1))  # type: ignore[return-value]


def test_boxes_in_clutter_may_help() -> None:
    found = outlook.of_region(digits())
    assert found.prospect == "may help"
    assert str(found).startswith("x* may help: a quick model has accuracy 0.8")


def test_boxes_of_other_images_do_not() -> None:
    batch = digits()
    assert batch.xstar is not None
    moved = batch._replace(xstar=batch.xstar.roll(1, 0))
    assert outlook.of_region(moved).prospect != "may help"


def test_a_region_that_leaves_as_much_outside() -> None:
    """Stripes all over the image tell the class: so does the half outside the region."""
    y = torch.arange(80) % 2
    wave = torch.sin(torch.arange(16) * 1.5).expand(16, 16)
    x = torch.stack([wave if one else wave.T for one in y])[:, None] / 2 + 0.5
    region = torch.zeros(80, 1, 16, 16)
    region[..., :8, :] = 1
    found = outlook.of_region(Batch(x, y, region, torch.ones(80, dtype=torch.bool)))
    assert found.prospect == "unlikely to help"
    assert "accuracy 1.00 inside the region, 1.00 on all of x, 1.00 outside" in found.why


def test_words_that_tell_the_class_in_one_place_only() -> None:
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(1, 9, (120, 60), generator=generator)
    y = torch.arange(120) % 2
    region = torch.zeros(120, 1, 60)
    region[:, 0, 20:23] = 1
    words[:, 20:23] = torch.randint(1, 5, (120, 3), generator=generator) + 4 * y[:, None]
    found = outlook.of_region(Batch(words, y, region, torch.ones(120, dtype=torch.bool)))
    assert found.prospect == "may help"


def test_a_vector_that_says_how_precise_a_label_is() -> None:
    x, xstar, noise = draw()
    y = (x[:, :1] + xstar.exp() * noise)[:, 0]
    found = outlook.of_vector(table(y, x, xstar))
    assert found.prospect == "may help"
    assert "het-likelihood" in found.why


def test_the_target_in_other_words() -> None:
    x, xstar, noise = draw()
    y = (x[:, :1] + 3 * xstar + 0.1 * noise)[:, 0]
    found = outlook.of_vector(table(y, x, xstar))
    assert str(found).startswith("x* is unlikely to help: a quick model has R2 0.")
    assert "a useful feature at test time" in found.why


def test_a_vector_of_noise() -> None:
    x, xstar, noise = draw()
    y = (x[:, :1] + noise)[:, 0]
    found = outlook.of_vector(table(y, x, xstar))
    assert found.prospect == "unlikely to help"


def test_edges_are_told_by_direction() -> None:
    stripes = (torch.arange(32) // 4 % 2).float().expand(32, 32)
    upright, lying = features.of_x(torch.stack([stripes, stripes.T])[:, None])
    by_cell = features.CELLS**2
    edges = features.N_DIRECTIONS * by_cell
    assert upright[:by_cell].sum() > 0.9 * upright[:edges].sum()
    third = slice(3 * by_cell, 4 * by_cell)  # of six directions the fourth is at right angles
    assert lying[third].sum() > 0.9 * lying[:edges].sum()


def test_it_is_one_of_the_facts() -> None:
    task = task_from({"name": "digits"}, {}).for_run(100, 0)
    facts = {fact.about: fact.text for fact in check_data(task, 100, 0).facts}
    assert facts["outlook"].startswith("x* may help: ")
