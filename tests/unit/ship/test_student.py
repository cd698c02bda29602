"""A student outside of its run: the same answers, and nothing foreign gets in."""

import json
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import lupi
from lupi.errors import LupiError
from lupi.records import STUDENT
from lupi.ship.export import Format, export
from lupi.ship.manifest import write_manifest
from lupi.train.finished import read_finished
from lupi.train.run import splits_for
from made_students import image_run, table_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_run(tmp_path_factory.mktemp("table"), "late")


@pytest.fixture(scope="module")
def exported(run: Path) -> Path:
    return export(run, run.parent / "shipped", "torch").folder


@pytest.fixture
def shipped(exported: Path, tmp_path: Path) -> Path:
    """One that a test may spoil."""
    return Path(shutil.copytree(exported, tmp_path / "shipped"))


def test_rows_get_the_answers_of_the_run(run: Path, exported: Path) -> None:
    finished = read_finished(run)
    test = next(
        iter(splits_for(type(finished.method), finished.task, finished.settings).test.batches(99))
    )
    frame = finished.task.run.parts["test"].frame  # type: ignore[union-attr]
    expected = finished.student.eval()(test.x).softmax(1)
    for folder in (run, exported):
        student = lupi.load_student(folder)
        x = student.encode(frame.drop(columns=["rain", "traffic", "hours", "late"]))
        assert torch.equal(x, test.x)
        predictions = student.predict(frame)
        late = torch.tensor([p["probabilities"]["late"] for p in predictions])
        assert torch.allclose(late, expected[:, 1], atol=1e-6)
        assert {p["prediction"] for p in predictions} <= {"late", "in time"}


def test_numbers_have_mean_and_deviation_in_their_own_units(tmp_path: Path) -> None:
    run = table_run(tmp_path)
    kept = json.loads((run / "preprocessing.json").read_text())["target"]
    student = lupi.load_student(run)
    frame = pd.read_csv(tmp_path / "deliveries.csv")
    output = student.outputs(student.encode(frame))
    first = student.predict(frame)[0]
    assert first["mean"] == pytest.approx(output[0, 0].item() * kept["std"] + kept["mean"])
    assert first["std"] == pytest.approx((output[0, 1] / 2).exp().item() * kept["std"])


@pytest.mark.parametrize("form", ["torch", "onnx"])
def test_a_linear_student_is_two_tensors(tmp_path: Path, form: Format) -> None:
    run = table_run(tmp_path, "late", name="linear")
    weights = load_file(run / STUDENT)
    assert set(weights) == {"out.weight", "out.bias"}
    frame = pd.read_csv(tmp_path / "deliveries.csv").drop(columns=["rain", "traffic", "late"])
    student = lupi.load_student(export(run, tmp_path / "shipped", form).folder)
    x = student.encode(frame)
    expected = x @ weights["out.weight"].T + weights["out.bias"]
    assert torch.allclose(student.outputs(x), expected, atol=1e-5)


@pytest.mark.parametrize("method", ["het-dropout", "hallucination"])
def test_images_get_the_answers_of_the_run(tmp_path: Path, method: str) -> None:
    run = image_run(tmp_path, method)
    student = lupi.load_student(run)
    finished = read_finished(run)
    test = next(
        iter(splits_for(type(finished.method), finished.task, finished.settings).test.batches(9))
    )
    files = sorted((tmp_path / "pets").rglob("*.png"))
    x = student.encode(files)
    assert x.shape == (16, 3, 16, 16)
    assert not any("unknown" in prediction for prediction in student.predict(files))
    Image.new("RGB", (16, 16), "magenta").save(tmp_path / "odd.png")
    (odd,) = student.predict([tmp_path / "odd.png"])
    assert odd["unknown"].startswith("unlike the training images: ")
    assert all((x == image).flatten(1).all(1).any() for image in test.x)  # all are among them
    assert torch.allclose(student.outputs(test.x), finished.student.eval()(test.x), atol=1e-6)
    assert set(student.predict(files[:1])[0]["probabilities"]) == {"cats", "dogs"}


def test_weights_need_no_data_and_no_method(run: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(run, tmp_path / "moved"))
    (moved / "checkpoint/method.safetensors").unlink(missing_ok=True)
    settings = json.loads((moved / "settings.json").read_text())
    settings["task"]["path"] = "gone.csv"
    (moved / "settings.json").write_text(json.dumps(settings))
    assert isinstance(lupi.load_student(moved).network, torch.nn.Module)


def _truncate(folder: Path) -> None:
    path = folder / "student.safetensors"
    path.write_bytes(path.read_bytes()[:-40])


def _pickle(folder: Path) -> None:
    torch.save({"a": torch.zeros(1)}, folder / "student.safetensors")


def _without_a_key(folder: Path) -> None:
    weights = load_file(folder / "student.safetensors")
    save_file(dict(list(weights.items())[1:]), folder / "student.safetensors")


def _with_a_key(folder: Path) -> None:
    weights = load_file(folder / "student.safetensors")
    save_file({**weights, "hstar.weight": torch.zeros(2)}, folder / "student.safetensors")


def _other_shape(folder: Path) -> None:
    weights = load_file(folder / "student.safetensors")
    save_file({**weights, "head.out.bias": torch.zeros(5)}, folder / "student.safetensors")


def _huge(folder: Path) -> None:
    path = folder / "student.json"
    document = json.loads(path.read_text())
    document["network"]["n_hidden"] = 8192
    path.write_text(json.dumps(document))


def _unknown_key(folder: Path) -> None:
    path = folder / "student.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "code": "import os"}))


def _torn_encoder(folder: Path) -> None:
    path = folder / "student.json"
    document = json.loads(path.read_text())
    document["features"]["columns"][0]["factor"] = []
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_truncate, "can't be read as weights"),
        (_pickle, "can't be read as weights"),
        (_without_a_key, "head.fc2.bias is missing"),
        (_with_a_key, "hstar.weight is unknown"),
        (_other_shape, r"head.out.bias is torch.float32 \(5,\), expected torch.float32 \(2,\)"),
        (_huge, "weights of another network"),
        (_unknown_key, "code: no such key"),
        (_torn_encoder, "expected . values of shift and factor"),
    ],
)
def test_a_foreign_file_is_refused(
    shipped: Path, spoil: Callable[[Path], None], message: str
) -> None:
    lupi.load_student(shipped)
    spoil(shipped)
    with pytest.raises(LupiError, match="is not the exported file"):
        lupi.load_student(shipped)
    write_manifest(shipped)  # by someone who knows how
    with pytest.raises(LupiError, match=message):
        lupi.load_student(shipped)


@pytest.mark.parametrize("name", ["student.onnx", "student.safetensors", "student.json"])
def test_a_file_that_the_manifest_does_not_list_is_not_loaded(shipped: Path, name: str) -> None:
    manifest = json.loads((shipped / "manifest.json").read_text())
    manifest["sha256"].pop(name, None)
    (shipped / "manifest.json").write_text(json.dumps(manifest))
    if not (shipped / name).exists():
        (shipped / name).write_bytes(b"a network of somebody else")
    with pytest.raises(LupiError, match=rf"{name} is not listed in manifest\.json"):
        lupi.load_student(shipped)


def test_a_folder_that_is_not_whole_is_refused(shipped: Path, tmp_path: Path) -> None:
    (shipped / "student.safetensors").unlink()
    with pytest.raises(LupiError, match=r"student.safetensors is missing"):
        lupi.load_student(shipped)
    (shipped / "manifest.json").write_text("{}")
    with pytest.raises(LupiError, match="has no checksums"):
        lupi.load_student(shipped)
    (shipped / "manifest.json").write_text('{"sha256": {"../secret": "0"}}')
    with pytest.raises(LupiError, match="is missing"):
        lupi.load_student(shipped)
    with pytest.raises(LupiError, match="is not a folder"):
        lupi.load_student(tmp_path / "nothing")


def test_what_needs_xstar_is_no_student(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="can't predict without x"):
        lupi.load_student(table_run(tmp_path, method="oracle"))
    with pytest.raises(LupiError, match="linear is not a network"):
        lupi.load_student(table_run(tmp_path, method="linear"))


def test_another_network_in_a_run_is_refused(run: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(run, tmp_path / "moved"))
    save_file({"a": torch.zeros(3)}, moved / STUDENT)
    with pytest.raises(LupiError, match=r"trunk.fc1.weight is missing"):
        lupi.load_student(moved)


def test_wrong_inputs_are_named(exported: Path) -> None:
    student = lupi.load_student(exported)
    frame = pd.DataFrame({"km": ["far"], "van": ["old"], "packed": [True], "sent": ["2024-05-26"]})
    with pytest.raises(LupiError, match="no column 'weight'"):
        student.predict(frame)
    with pytest.raises(LupiError, match="'far' in row 1"):
        student.predict(frame.assign(weight=1.0))
    with pytest.raises(LupiError, match="expected a non-empty DataFrame"):
        student.predict(["a.png"])


def test_embeddings_of_numbers_are_shipped(tmp_path: Path) -> None:
    run = table_run(tmp_path, "late", embedding="periodic")
    assert "trunk.embed.frequencies" in load_file(run / STUDENT)
    frame = pd.read_csv(tmp_path / "deliveries.csv")
    students = [
        lupi.load_student(export(run, tmp_path / form, form).folder) for form in get_args(Format)
    ]
    one, other = (student.outputs(student.encode(frame)) for student in students)
    assert torch.allclose(one, other, atol=1e-5)


def test_threads_may_share_a_student(tmp_path: Path) -> None:
    run = image_run(tmp_path)
    files = sorted((tmp_path / "pets").rglob("*.png")) * 2
    for folder in (run, export(run, tmp_path / "graph", "onnx").folder):
        student = lupi.load_student(folder)
        expected, filters = [student.predict([file]) for file in files], list(warnings.filters)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda file, s=student: s.predict([file]), files))
        assert warnings.filters == filters
        for (one,), (other,) in zip(expected, found, strict=True):
            assert one["prediction"] == other["prediction"]
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)
