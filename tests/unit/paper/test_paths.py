import math

import pytest
import torch
from torch import nn

from lupi.errors import LupiError
from lupi.networks.vgg import VGG, Pixels
from lupi_paper.theory.paths import log_path_count, log_path_norm

Edge = tuple[int, int, float]


def affine_edges(layer: nn.Module, shape: tuple[int, ...]) -> tuple[list[Edge], list[float]]:
    """Return (from, to, weight) of a layer, found by passing unit vectors, and what 0 becomes."""
    n_in = math.prod(shape)
    with torch.no_grad():
        bias = layer(torch.zeros(1, *shape, dtype=torch.float64)).flatten()
        columns = layer(torch.eye(n_in, dtype=torch.float64).view(n_in, *shape)).flatten(1) - bias
    edges = [
        (i, j, columns[i, j].item())
        for i in range(n_in)
        for j in range(columns.shape[1])
        if abs(columns[i, j]) > 1e-12
    ]
    return edges, bias.tolist()


def max_pool_edges(layer: nn.MaxPool2d, shape: tuple[int, ...]) -> list[Edge]:
    """Every input may pass to the output whose window it is in, with weight 1."""
    n_in = math.prod(shape)
    moved = layer(torch.eye(n_in, dtype=torch.float64).view(n_in, *shape)).flatten(1)
    return [(i, j, 1.0) for i in range(n_in) for j in range(moved.shape[1]) if moved[i, j] > 0]


def all_paths(net: nn.Sequential, shape: tuple[int, ...]) -> list[tuple[int, float]]:
    """Walk every path from an input or a bias, one by one: (output, product of weights)."""
    x = torch.zeros(1, *shape, dtype=torch.float64)
    steps: list[list[Edge]] = []
    starts: list[tuple[int, int, float]] = [(0, i, 1.0) for i in range(x.numel())]
    for layer in net:
        if isinstance(layer, nn.MaxPool2d):
            steps.append(max_pool_edges(layer, tuple(x.shape[1:])))
        elif not isinstance(layer, (nn.ReLU, nn.Flatten, nn.Dropout)):
            edges, bias = affine_edges(layer, tuple(x.shape[1:]))
            steps.append(edges)
            if getattr(layer, "bias", None) is not None or isinstance(layer, Pixels):
                starts += [(len(steps), j, b) for j, b in enumerate(bias)]
        x = layer(x)

    def walk(depth: int, unit: int, weight: float) -> list[tuple[int, float]]:
        if depth == len(steps):
            return [(unit, weight)]
        return [
            path
            for i, j, edge in steps[depth]
            if i == unit
            for path in walk(depth + 1, j, weight * edge)
        ]

    return [path for start in starts for path in walk(*start)]


def brute_force(net: nn.Sequential, shape: tuple[int, ...]) -> tuple[int, float]:
    paths = all_paths(net, shape)
    norms: dict[int, float] = {}
    for output, weight in paths:
        norms[output] = norms.get(output, 0.0) + weight**2
    return len(paths), max(norms.values())


def worn(net: nn.Sequential) -> nn.Sequential:
    """Give every bias and batch-norm statistic a value other than its first."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            nn.init.uniform_(module.running_mean, 0.5, 1.0)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    for weight in net.parameters():
        nn.init.uniform_(weight, 0.2, 1.5)
    return net.double().eval()


NETS = {
    "mlp": (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2)), (3,)),
    "no bias": (nn.Sequential(nn.Linear(3, 4, False), nn.ReLU(), nn.Linear(4, 2, False)), (3,)),
    "conv": (
        nn.Sequential(
            Pixels([0.4], [0.3]),
            nn.Conv2d(1, 2, 3, padding=1),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(8, 2),
        ),
        (1, 4, 4),
    ),
    "strides and groups": (
        nn.Sequential(nn.Conv2d(2, 4, 2, stride=2, groups=2), nn.Flatten(), nn.Linear(16, 2)),
        (2, 4, 4),
    ),
    "averages": (
        nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4, 2)),
        (1, 6, 6),
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_against_walking_every_path(name: str) -> None:
    net, shape = NETS[name]
    net = worn(net)
    n_paths, norm = brute_force(net, shape)
    assert math.exp(log_path_count(net, shape)) == pytest.approx(n_paths, rel=1e-9)
    assert math.exp(log_path_norm(net, shape)) == pytest.approx(norm, rel=1e-9)


def test_paths_add_up_to_the_output() -> None:
    """With every gate open the output is the sum over paths: so biases have to be paths."""
    net = worn(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    totals = [0.0, 0.0]
    for output, weight in all_paths(net, (3,)):
        totals[output] += weight
    ones = torch.ones(1, 3, dtype=torch.float64)
    assert net(ones)[0].tolist() == pytest.approx(totals)


def test_a_deep_network_does_not_overflow() -> None:
    layers = [nn.Linear(100, 100, bias=False) for _ in range(400)]
    net = nn.Sequential(*layers, nn.Linear(100, 1, bias=False))
    assert log_path_count(net, (100,)) == pytest.approx(401 * math.log(100), rel=1e-5)
    assert math.isfinite(log_path_norm(net, (100,)))


def test_a_vgg_is_its_layers_in_turn() -> None:
    net = VGG([(2,)], (3,), n_outputs=2, image_size=4)
    net.double().eval()
    layers = [m for m in net.modules() if not isinstance(m, (VGG, nn.Sequential))]
    n_paths, norm = brute_force(nn.Sequential(*layers), (1, 4, 4))
    assert math.exp(log_path_count(net, (1, 4, 4))) == pytest.approx(n_paths, rel=1e-6)
    assert math.exp(log_path_norm(net, (1, 4, 4))) == pytest.approx(norm, rel=1e-6)


def test_a_network_without_weight_has_norm_zero() -> None:
    layer = nn.Linear(2, 2, bias=False)
    nn.init.zeros_(layer.weight)
    net = nn.Sequential(layer)
    assert log_path_norm(net, (2,)) == -math.inf
    assert log_path_count(net, (2,)) == pytest.approx(math.log(4))
    after = nn.Linear(2, 1)
    nn.init.constant_(after.bias, 3.0)
    assert log_path_norm(nn.Sequential(layer, after), (2,)) == pytest.approx(math.log(9))


@pytest.mark.parametrize(
    "layer", [nn.Sigmoid(), nn.LSTM(2, 2), nn.MaxPool2d(2, ceil_mode=True), nn.LeakyReLU()]
)
def test_what_has_no_gates_is_refused(layer: nn.Module) -> None:
    with pytest.raises(LupiError, match=r"through 1, .*supported: Sequential and VGG of Linear"):
        log_path_count(nn.Sequential(nn.Identity(), layer), (1, 4, 4))
