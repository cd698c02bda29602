from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lupi.errors import LupiError
from lupi.networks.pretrained import image_encoder, load_network


def make_network() -> nn.Sequential:
    """Two linear layers: the vector is what is between them."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 5), nn.Linear(5, 2))


def make_nothing() -> str:
    return "nothing"


def test_the_vector_enters_the_last_linear_layer(tmp_path: Path) -> None:
    trained = make_network()
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    net = load_network(f"{__name__}:make_network", tmp_path / "w.safetensors")
    images = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    vectors = image_encoder(net, "unit")(images)
    expected = trained[2](images.float().mean((2, 3)) / 255)
    assert torch.allclose(vectors, expected, atol=1e-6)
    symmetric = trained[2](images.float().mean((2, 3)) / 127.5 - 1)
    assert torch.allclose(image_encoder(net, "symmetric")(images), symmetric, atol=1e-6)
    assert not torch.allclose(image_encoder(net, "imagenet")(images), expected, atol=1e-2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet", "expected efficientnet-lite0, or package.module:function"),
        (f"{__name__}:make_none", "has no attribute 'make_none'"),
        (f"{__name__}:make_nothing", "it returned a str, not a torch module"),
    ],
)
def test_bad_names(name: str, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        load_network(name)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "w.safetensors")
    with pytest.raises(LupiError, match=r"w.safetensors can't be loaded into"):
        load_network(f"{__name__}:make_network", tmp_path / "w.safetensors")


@pytest.mark.extra
def test_efficientnet_is_an_extra() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra `features` is not installed")
    net = load_network("efficientnet-lite0")
    vectors = image_encoder(net, "symmetric")(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    assert vectors.shape == (1, 1280)
