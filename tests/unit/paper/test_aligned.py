import pytest
import torch
from torch.nn import functional as F

from lupi_paper.translation.networks.aligned import AlignedLinear


@pytest.mark.parametrize("n_outputs", [3, 16, 35])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4)])
def test_it_is_a_linear_layer(n_outputs: int, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = AlignedLinear(4, n_outputs).double()
    x = torch.randn(shape, dtype=torch.double, requires_grad=True)
    assert torch.allclose(layer(x), F.linear(x, layer.weight, layer.bias))

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = torch.func.functional_call(
            layer, {"weight": weight, "bias": bias}, (x,)
        )
        return output

    assert torch.autograd.gradcheck(run, (x, layer.weight, layer.bias))


def test_bfloat16_is_left_to_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert AlignedLinear(4, 3)(torch.randn(5, 4)).dtype == torch.bfloat16
