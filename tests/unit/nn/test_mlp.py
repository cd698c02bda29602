import torch

from lupi.nn.networks.mlp import MLP
from lupi.nn.sites import find_sites


def test_every_hidden_layer_has_a_site() -> None:
    net = MLP(5, 3, n_hidden=8, n_layers=3)
    assert list(find_sites(net)) == ["trunk.drop1", "trunk.drop2", "head.drop3"]
    assert net(torch.randn(4, 5)).shape == (4, 3)
    assert net.trunk(torch.randn(4, 5)).shape == (4, 8)


def test_first_predictions_are_near_zero() -> None:
    assert MLP(20, 2).eval()(torch.randn(100, 20)).abs().max() < 0.5
