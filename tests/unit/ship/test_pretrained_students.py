"""Students with a pretrained part: exported whole, from an image file to a prediction."""

from pathlib import Path
from typing import Any

import pytest
import torch

import lupi
from lupi.ship.export import export
from made_students import image_run

NETWORK: dict[str, Any] = {"name": "efficientnet-lite0", "pooling": "both", "n_channels": 8}
TASK = {"image_size": 32, "stored_size": None}


def is_image(path: Path) -> bool:
    return path.suffix in (".jpg", ".jpeg", ".png")


@pytest.fixture(scope="module", params=["none", "last"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    network = {**NETWORK, "tune": request.param}
    return image_run(folder, "guided-attention", network, **TASK)


@pytest.mark.parametrize("format_", ["torch", "onnx"])
def test_the_exported_student_predicts_files_like_the_run(run: Path, format_: Any) -> None:
    done = export(run, run.parent / format_, format_)
    files = [p for p in sorted((run.parent.parent / "pets").rglob("*")) if is_image(p)][:3]
    here, shipped = lupi.load_student(run), lupi.load_student(done.folder)
    expected, found = (s.outputs(s.encode(files)).softmax(1) for s in (here, shipped))
    assert torch.allclose(found, expected, atol=1e-5)
    assert [p["prediction"] for p in shipped.predict(files)]
    card = (done.folder / "MODEL_CARD.md").read_text()
    assert "SHA-256" in card
    assert "efficientnet-lite0" in card


def test_a_tuned_student_changes_its_backbone(run: Path) -> None:
    student = lupi.load_student(run)
    assert isinstance(student.network, torch.nn.Module)
    weights = student.network.state_dict()
    backbone = {k: v for k, v in weights.items() if "backbone" in k and "_blocks.10" in k}
    from lupi.networks.backbones import load_backbone

    pretrained = load_backbone("efficientnet-lite0").state_dict()
    same = [torch.equal(v, pretrained[k.partition("backbone.")[2]]) for k, v in backbone.items()]
    is_frozen = "backbone.net._conv_stem.weight" in weights  # beside the student, not in it
    assert all(same) == is_frozen
