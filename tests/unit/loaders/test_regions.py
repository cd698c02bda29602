"""Regions as tensors: of boxes, and applied to x."""

import torch

from lupi.loaders.xstar.regions import box_mask, draw_span, mask_box, restrict, without


def test_mask_of_a_box() -> None:
    mask = box_mask(torch.tensor([[1, 0, 3, 2]]), height=3, width=4)
    assert mask[0, 0].tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]


def test_box_of_a_mask_undoes_the_mask_of_a_box() -> None:
    boxes = torch.tensor([[1, 0, 3, 2], [0, 0, 4, 8], [3, 7, 4, 8]])
    centre_x, centre_y, width, height = mask_box(box_mask(boxes, height=8, width=4)).unbind(1)
    assert centre_x.tolist() == [0.5, 0.5, 0.875]
    assert centre_y.tolist() == [0.125, 0.5, 0.9375]
    assert width.tolist() == [0.5, 1.0, 0.25]
    assert height.tolist() == [0.25, 1.0, 0.125]


def test_an_empty_mask_has_no_box() -> None:
    assert mask_box(torch.zeros(1, 1, 4, 4)).tolist() == [[0, 0, 0, 0]]


def test_an_image_keeps_the_region_or_all_but_it() -> None:
    x = torch.rand(2, 3, 4, 4)
    region = torch.zeros(2, 1, 4, 4)
    region[:, :, :2] = 1
    assert torch.equal(restrict(x, region)[:, :, :2], x[:, :, :2])
    assert restrict(x, region)[:, :, 2:].sum() == 0
    assert torch.equal(restrict(x, region) + without(x, region), x)


def test_a_text_keeps_the_words_that_belong_to_the_region_by_half_or_more() -> None:
    x = torch.tensor([[5, 6, 7, 0]])
    region = torch.tensor([[[0.4, 0.5, 1.0, 0.0]]])
    assert restrict(x, region).tolist() == [[0, 6, 7, 0]]
    assert without(x, region).tolist() == [[5, 0, 0, 0]]


def test_a_span_is_a_run_of_words() -> None:
    region = torch.tensor([[[1.0, 1.0, 0.0, 1.0]]] * 2 + [[[0.0] * 4]])
    spans = draw_span(region, torch.tensor([0.49, 0.5, 0.9]))
    assert spans[:, 0].tolist() == [[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_every_span_is_drawn_as_often() -> None:
    region = torch.tensor([[[1.0, 1.0, 0.0, 1.0, 0.0, 1.0]]]).expand(300, 1, 6)
    spans = draw_span(region, torch.arange(300) / 300)
    assert spans[:, 0].sum(0).tolist() == [100, 100, 0, 100, 0, 100]
