import torch

from lupi.loaders.xstar.regions import box_mask, mask_box


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
