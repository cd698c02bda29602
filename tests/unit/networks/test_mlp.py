import torch

from lupi.networks.mlp import MLP
from lupi.noise.sites import find_sites


def test_every_hidden_layer_has_a_site() -> None:
    net = MLP(5, 3, n_hidden=8, n_layers=3)
    assert list(find_sites(net)) == ["trunk.drop1", "trunk.drop2", "head.drop3"]
    assert net(torch.randn(4, 5)).shape == (4, 3)
    assert net.trunk(torch.randn(4, 5)).shape == (4, 8)


def test_first_predictions_are_near_zero() -> None:
    assert MLP(20, 2).eval()(torch.randn(100, 20)).abs().max() < 0.5


def test_periodic_embeddings_stand_beside_x() -> None:
    net = MLP(5, 3, n_hidden=8, periodic=True).eval()
    x = torch.randn(4, 5)
    embedded = net.trunk.get_submodule("embed")(x)
    assert torch.equal(embedded[:, :5], x)
    assert embedded.shape == (4, 25)
    assert (embedded[:, 5:] >= 0).all()
    other = x.clone()
    other[:, 2] += 1
    changed = (net.trunk.get_submodule("embed")(other) != embedded).any(0)
    assert set(changed.nonzero().flatten().tolist()) <= {2, *range(13, 17)}  # its own alone
    assert net(x).shape == (4, 3)
