import math

import pytest
import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi_paper.theory.outputs import measure_outputs


def test_by_hand() -> None:
    outputs = torch.tensor([[1.0, 0.0], [3.0, -5.0]])
    # squared distances to (0, 1) and (1, 0): 2 and 29
    assert measure_outputs(outputs, torch.tensor([1, 0])) == pytest.approx((2.5, 5.0, 13.5, 29.0))


@pytest.mark.parametrize(
    ("outputs", "y"),
    [
        (torch.zeros(1, 2), torch.tensor([0])),
        (torch.zeros(3), torch.tensor([0, 0, 0])),
        (torch.zeros(3, 2), torch.tensor([[0, 0]] * 3)),
        (torch.zeros(3, 2), torch.zeros(3)),
        (torch.tensor([[1.0], [math.nan]]), torch.tensor([0, 0])),
    ],
)
def test_what_has_no_variance_is_refused(outputs: Tensor, y: Tensor) -> None:
    with pytest.raises(LupiError, match="outputs"):
        measure_outputs(outputs, y)
