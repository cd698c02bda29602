import pytest
import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.networks.vgg import small_vgg, vgg16_bn
from lupi.noise.sites import find_sites, site_shapes


def test_vgg16_has_the_published_number_of_weights() -> None:
    with torch.device("meta"):
        net = vgg16_bn(n_outputs=1000, image_size=224)
    assert sum(p.numel() for p in net.parameters()) == 138_365_992


def test_vgg16_layer_by_layer() -> None:
    with torch.device("meta"):
        net = vgg16_bn(n_outputs=1000, image_size=224)
    shapes: list[tuple[int, ...]] = []

    def record(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        shapes.append(tuple(output.shape[1:]))

    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.MaxPool2d, nn.Linear)):
            module.register_forward_hook(record)
    net(torch.empty(2, 3, 224, 224, device="meta"))
    assert shapes == [
        *[(64, 224, 224)] * 2,
        (64, 112, 112),
        *[(128, 112, 112)] * 2,
        (128, 56, 56),
        *[(256, 56, 56)] * 3,
        (256, 28, 28),
        *[(512, 28, 28)] * 3,
        (512, 14, 14),
        *[(512, 14, 14)] * 3,
        (512, 7, 7),
        (4096,),
        (4096,),
        (1000,),
    ]


def test_sigmoid_layers_in_the_head_only() -> None:
    net = small_vgg(n_outputs=10, image_size=32, fc_activation="sigmoid")
    assert [type(m) for m in net.head.modules() if isinstance(m, (nn.ReLU, nn.Sigmoid))] == [
        nn.Sigmoid
    ] * 2
    assert not any(isinstance(m, nn.Sigmoid) for m in net.trunk.modules())
    relu = small_vgg(n_outputs=10, image_size=32)
    assert list(net.state_dict()) == list(relu.state_dict())


def test_vgg16_takes_small_images() -> None:
    net = vgg16_bn(n_outputs=5, image_size=64)
    sites = find_sites(net, ["*"])
    shapes = site_shapes(net, sites, torch.rand(1, 3, 64, 64))
    assert {name: tuple(found.shape) for name, found in shapes.items()} == {
        "trunk.site1": (64, 32, 32),
        "trunk.site2": (128, 16, 16),
        "trunk.site3": (256, 8, 8),
        "trunk.site4": (512, 4, 4),
        "trunk.site5": (512, 2, 2),
        "head.drop1": (4096,),
        "head.drop2": (4096,),
    }


def test_small_vgg_shapes() -> None:
    net = small_vgg(n_outputs=10, image_size=32, width=4)
    assert net(torch.rand(2, 1, 32, 32)).shape == (2, 10)
    assert net.trunk(torch.rand(2, 1, 32, 32)).shape == (2, 16)


def test_images_are_normalised_inside() -> None:
    net = small_vgg(n_outputs=10, image_size=32, mean=(0.2,), std=(0.4,))
    image = net.trunk.get_submodule("pixels")
    assert image(torch.full((1, 1, 32, 32), 0.6)).unique().item() == pytest.approx(1.0)


def test_images_too_small_for_the_blocks() -> None:
    with pytest.raises(LupiError, match="16 px are too small for 5 blocks, which need 32 px"):
        vgg16_bn(10, image_size=16)


def test_small_vgg_may_be_deeper_and_keep_places() -> None:
    net = small_vgg(n_outputs=10, image_size=32, width=4, n_convs=2, pool=2)
    convs = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    assert [conv.out_channels for conv in convs] == [4, 4, 8, 8, 16, 16]
    assert net.trunk(torch.zeros(2, 1, 32, 32)).shape == (2, 16 * 2 * 2)


def test_small_vgg_without_hidden_layers_drops_before_the_last() -> None:
    net = small_vgg(n_outputs=10, image_size=32, width=4, n_fc=0, dropout=0.3)
    assert [name for name, _ in net.head.named_children()] == ["drop1", "out"]
    assert net(torch.rand(2, 1, 32, 32)).shape == (2, 10)
