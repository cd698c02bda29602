"""Pretrained backbones: local folders of transformers, and EfficientNet-Lite0."""

from pathlib import Path

import pytest
import torch

from conftest import digits_task
from lupi.errors import LupiError
from lupi.methods.registry import build_method
from lupi.networks.backbones import empty_backbone, find_backbone, load_backbone, maps_shape
from lupi.networks.map_student import MapStudent

transformers = pytest.importorskip("transformers", reason="the extra `examples` is not installed")
pytestmark = pytest.mark.extra

TINY = transformers.ViTConfig(
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    image_size=32,
    patch_size=8,
)


@pytest.fixture
def vit(tmp_path: Path) -> str:
    torch.manual_seed(0)
    transformers.ViTModel(TINY, add_pooling_layer=False).save_pretrained(tmp_path / "vit")
    return str(tmp_path / "vit")


def test_patches_of_a_transformer_are_places(vit: str) -> None:
    backbone = load_backbone("transformers", vit)
    assert maps_shape(backbone, 32) == (8, 4, 4)
    assert maps_shape(backbone, 48) == (8, 6, 6)  # other sizes than it was trained with
    x = torch.rand(1, 3, 32, 32)
    tokens = backbone.net(x * 2 - 1).last_hidden_state
    assert torch.allclose(backbone(x)[0, :, 1, 2], tokens[0, 1 + 4 * 1 + 2])


def test_a_backbone_is_rebuilt_without_its_folder(vit: str) -> None:
    backbone = load_backbone("transformers", vit)
    other = empty_backbone(backbone.source._replace(model=None))
    other.load_state_dict(backbone.state_dict())
    x = torch.rand(2, 1, 32, 32)  # grey images, too
    assert torch.allclose(other.eval()(x), backbone(x), atol=1e-6)


def test_changed_weights_are_noticed(vit: str) -> None:
    source = load_backbone("transformers", vit).source
    find_backbone(source)
    torch.manual_seed(1)
    transformers.ViTModel(TINY, add_pooling_layer=False).save_pretrained(vit)
    with pytest.raises(LupiError, match="other weights"):
        find_backbone(source)


def test_a_model_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="hf download facebook/nothing --local-dir"):
        load_backbone("transformers", "facebook/nothing")


def test_frozen_and_tuned_weights(vit: str) -> None:
    backbone = load_backbone("transformers", vit)
    student = MapStudent(2, [0.0] * 8, [1.0] * 8, 4, "attention", 0.1, backbone)
    learns = {which: _learns(backbone.tune(which)) for which in ("none", "last", "all")}
    assert not learns["none"]
    assert learns["last"]
    assert len(learns["last"]) < len(learns["all"])
    assert not student.train().trunk.get_submodule("backbone").training


def _learns(backbone: torch.nn.Module) -> list[str]:
    return [name for name, weight in backbone.named_parameters() if weight.requires_grad]


def test_efficientnet_joins_two_strides() -> None:
    backbone = load_backbone("efficientnet-lite0")
    assert maps_shape(backbone, 64) == (152, 8, 8)
    other = empty_backbone(backbone.source)
    other.load_state_dict(backbone.state_dict())
    x = torch.rand(1, 3, 64, 64)
    assert torch.equal(other.eval()(x), backbone(x))


def test_a_tuned_backbone_has_its_own_learning_rate() -> None:
    task = digits_task(name="efficientnet-lite0", tune="last", tune_lr=0.05, pooling="attention")
    method = build_method("guided-attention", {}, task.network(), task)
    rest, slow = method.parameter_groups()
    assert "lr_factor" not in rest
    assert slow["lr_factor"] == 0.05
    backbone = method.net.get_submodule("trunk.backbone")
    assert {id(w) for w in slow["params"]} == {id(w) for w in backbone.parameters()}
    assert len(rest["params"]) + len(slow["params"]) == len(list(method.parameters()))
