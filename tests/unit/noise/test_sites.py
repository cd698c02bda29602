import pytest
import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.noise.sites import Site, attached, find_sites, map_sites, reading, site_shapes


def make_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), Site(), nn.Flatten(), nn.Linear(4 * 9, 5), nn.Dropout(0.5)
    )


def test_dropouts_are_the_default() -> None:
    assert list(find_sites(make_net())) == ["4"]


def test_patterns_find_sites_in_order() -> None:
    assert list(find_sites(make_net(), ["*"])) == ["1", "4"]


def test_a_pattern_without_a_site_lists_the_sites() -> None:
    with pytest.raises(LupiError, match="no site of the network matches 'fc'; its sites: 1, 4"):
        find_sites(make_net(), ["fc"])


def test_any_layer_that_is_named_in_full_is_a_site_behind_it() -> None:
    net = make_net()
    sites = find_sites(net, ["3", "4"])
    assert list(sites) == ["3", "4"]
    x = torch.randn(2, 1, 5, 5)
    with reading(sites) as seen:
        net.eval()(x)
    assert torch.equal(seen["3"], seen["4"])
    with attached(find_sites(net, ["3"]), {"3": lambda h: h * 0 + 7}):
        assert (net.train()[:4](x) == 7).all()


def test_a_layer_that_returns_no_tensor_is_no_site() -> None:
    net = nn.Sequential(nn.LSTM(3, 4))
    with (
        pytest.raises(LupiError, match="site 0: LSTM returns tuple, not a tensor"),
        reading(find_sites(net, ["0"])),
    ):
        net(torch.zeros(2, 5, 3))


def test_a_site_is_the_identity() -> None:
    h = torch.randn(2, 3)
    assert Site()(h) is h


def test_attached_functions_replace_dropout_in_training_only() -> None:
    net = make_net()
    x = torch.randn(2, 1, 5, 5)
    with attached(find_sites(net), {"4": lambda h: torch.full_like(h, 7.0)}):
        assert (net.train()(x) == 7).all()
        assert not (net.eval()(x) == 7).any()
    net.train()
    assert (net(torch.ones(64, 1, 5, 5)) == 0).any()  # Bernoulli dropout is back


def test_attached_functions_suspend_bernoulli_noise() -> None:
    net = nn.Sequential(nn.Dropout(0.9))
    x = torch.ones(100, 10)
    with attached(find_sites(net), {"0": lambda h: h}):
        assert torch.equal(net.train()(x), x)


def test_a_network_is_as_if_nothing_had_been_attached_afterwards() -> None:
    net = make_net()
    zero = {"1": lambda h: h * 0, "4": lambda h: h * 0}
    with attached(find_sites(net, ["*"]), zero):
        assert (net.train()(torch.randn(8, 1, 5, 5)) == 0).all()
    with pytest.raises(RuntimeError), attached(find_sites(net, ["*"]), zero):
        net(torch.randn(8, 9, 5, 5))  # not the channels it takes
    assert net[4].p == 0.5
    assert (net(torch.randn(8, 1, 5, 5)) != 0).any()


def test_shapes_leave_statistics_and_mode_alone() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), Site())
    before = {key: value.clone() for key, value in net.state_dict().items()}
    shapes = site_shapes(net, find_sites(net, ["2"]), torch.randn(2, 1, 5, 5))
    assert {name: found.shape for name, found in shapes.items()} == {"2": torch.Size([4, 3, 3])}
    assert net.training
    after: dict[str, Tensor] = net.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_reading_changes_nothing_and_leaves_nothing_behind() -> None:
    net = make_net().eval()
    x = torch.randn(2, 1, 5, 5)
    with reading(find_sites(net, ["*"])) as seen:
        output = net(x)
    assert torch.equal(output, net(x))
    assert torch.equal(seen["1"], net[0](x))
    assert list(seen) == ["1", "4"]
    seen.clear()
    net(x)
    assert not seen


def test_reading_sees_activations_before_dropout() -> None:
    net = nn.Sequential(nn.Dropout(0.9)).train()
    with reading(find_sites(net)) as seen:
        net(torch.ones(4, 10))
    assert (seen["0"] == 1).all()


def test_attached_inside_the_block_only() -> None:
    net = nn.Sequential(nn.Dropout(0.5)).train()
    with attached(find_sites(net), {"0": lambda h: h + 1}):
        assert net(torch.zeros(1)).item() == 1
    assert net(torch.zeros(1)).item() == 0
    assert net[0].p == 0.5
    with pytest.raises(ZeroDivisionError), attached(find_sites(net), {"0": lambda h: h}):
        _ = 1 / 0
    assert net[0].p == 0.5


def test_map_sites_end_with_the_one_that_is_named() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), Site(), nn.Conv2d(4, 2, 3), Site(), nn.Flatten(), Site()
    )
    x = torch.randn(2, 1, 6, 6)
    assert map_sites(net, x) == {"1": torch.Size([4, 4, 4]), "3": torch.Size([2, 2, 2])}
    assert list(map_sites(net, x, "1")) == ["1"]
    with pytest.raises(LupiError, match="'5' is not a site with a map; sites with a map: 1, 3"):
        map_sites(net, x, "5")
    with pytest.raises(LupiError, match="no site with a map; place a `Site`"):
        map_sites(nn.Sequential(Site()), torch.zeros(2, 3))
