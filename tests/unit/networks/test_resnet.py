import pytest
import torch
from torch import Tensor, nn

from lupi.networks.resnet import ResNet, resnet18, resnet50
from lupi.noise.sites import find_sites, site_shapes


def build(name: str, image_size: int = 224) -> ResNet:
    with torch.device("meta"):
        return (resnet18 if name == "resnet18" else resnet50)(1000, image_size)


def conv_shapes(net: nn.Module, size: int) -> list[tuple[int, ...]]:
    """Return the output shape of each convolution, in the order of a pass."""
    shapes: list[tuple[int, ...]] = []

    def record(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        shapes.append(tuple(output.shape[1:]))

    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(record)
    net(torch.empty(2, 3, size, size, device="meta"))
    return shapes


@pytest.mark.parametrize(("name", "n"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)])
def test_published_number_of_weights(name: str, n: int) -> None:
    assert sum(p.numel() for p in build(name).parameters()) == n


def test_resnet18_layer_by_layer() -> None:
    def stage(channels: int, side: int) -> list[tuple[int, ...]]:
        """Two convolutions and the projection of the first block, two convolutions."""
        return [(channels, side, side)] * 5

    assert conv_shapes(build("resnet18"), 224) == [
        (64, 112, 112),
        *[(64, 56, 56)] * 4,  # no projection: the shape stays
        *stage(128, 28),
        *stage(256, 14),
        *stage(512, 7),
    ]


def test_resnet50_layer_by_layer() -> None:
    def stage(n: int, width: int, side: int, before: int) -> list[tuple[int, ...]]:
        """The first block reduces before its 3x3 convolution halves the map."""
        small, large = (width, side, side), (4 * width, side, side)
        first = [(width, before, before), small, large, large]
        return [*first, *[small, small, large] * (n - 1)]

    assert conv_shapes(build("resnet50"), 224) == [
        (64, 112, 112),
        *stage(3, 64, 56, 56),
        *stage(4, 128, 28, 56),
        *stage(6, 256, 14, 28),
        *stage(3, 512, 7, 14),
    ]


@pytest.mark.parametrize(("size", "sides"), [(32, (32, 16, 8, 4)), (127, (127, 64, 32, 16))])
def test_small_images_enter_by_the_small_stem(size: int, sides: tuple[int, ...]) -> None:
    net = build("resnet18", size)
    shapes = site_shapes(
        net, find_sites(net, ["trunk.*"]), torch.empty(2, 3, size, size).to("meta")
    )
    assert [found.shape[1] for found in shapes.values()] == list(sides)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_sites(name: str) -> None:
    net = build(name, 32)
    sites = ["trunk.site1", "trunk.site2", "trunk.site3", "trunk.site4", "head.drop1"]
    assert list(find_sites(net, ["*"])) == sites


@pytest.mark.parametrize("size", [7, 33, 130])
def test_any_input_size_and_number_of_channels(size: int) -> None:
    net = resnet18(n_outputs=3, image_size=size, mean=(0.5,), std=(0.5,))
    assert net(torch.rand(2, 1, size, size)).shape == (2, 3)
    assert net.trunk(torch.rand(2, 1, size, size)).shape == (2, 512)


def test_a_block_adds_its_input() -> None:
    block = resnet18(n_outputs=3, image_size=32).trunk.get_submodule("stage1.0").eval()
    for weight in block.parameters():
        nn.init.zeros_(weight)
    x = torch.randn(2, 64, 4, 4)
    assert torch.equal(block(x), x.relu())
