"""The exported folder: the same student, alone."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from safetensors.torch import load_file

import lupi
from lupi.errors import LupiError
from lupi.ship.export import Format, export
from lupi.ship.onnx_file import OnnxNetwork, write_onnx
from lupi.train.checkpoint import save_weights
from made_students import image_run

TELLTALE = ("xstar", "x*", "privileged", "het", "noise", "box", "logvar", "lupi/", ".py", "/tmp")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image_run(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def shipped(run: Path) -> dict[str, Path]:
    formats: tuple[Format, ...] = ("torch", "onnx")
    done = {format_: export(run, run.parent / format_, format_) for format_ in formats}
    assert all(e.n_rows == 4 and e.difference < 1e-4 for e in done.values())
    return {format_: e.folder for format_, e in done.items()}


def test_both_formats_answer_alike_for_any_number_of_rows(shipped: dict[str, Path]) -> None:
    students = [lupi.load_student(folder) for folder in shipped.values()]
    for n in (1, 2, 7):
        outputs = [
            student.outputs(torch.rand(n, 3, 16, 16, generator=_seeded())) for student in students
        ]
        assert outputs[0].shape == (n, 2)
        assert (outputs[0] - outputs[1]).abs().max() < 1e-4


def test_nothing_but_the_card_mentions_xstar(shipped: dict[str, Path]) -> None:
    model = onnx.load(shipped["onnx"] / "student.onnx")
    graph = model.graph
    names = [i.name for i in graph.initializer]
    names += [
        part for n in graph.node for part in (n.name, n.op_type, n.domain, *n.input, *n.output)
    ]
    names += [v.name for v in (*graph.input, *graph.output, *graph.value_info)]
    names += [text for p in model.metadata_props for text in (p.key, p.value)]
    names += [model.doc_string, graph.doc_string, graph.name]
    names += list(load_file(shipped["torch"] / "student.safetensors"))
    names += [(folder / "student.json").read_text() for folder in shipped.values()]
    for name in names:
        assert not [word for word in TELLTALE if word in name.lower()], name
    assert not any(n.metadata_props or n.doc_string for n in graph.node)
    whole = (shipped["onnx"] / "student.onnx").read_bytes()
    assert not [
        word for word in ("xstar", "privileged", "stack_trace", ".py") if word.encode() in whole
    ]
    card = (shipped["onnx"] / "MODEL_CARD.md").read_text()
    assert "does not take x*" in card
    assert "a box or a mask" in card


def test_the_preprocessing_is_in_the_graph_file(shipped: dict[str, Path]) -> None:
    model = onnx.load(shipped["onnx"] / "student.onnx")
    kept = json.loads({p.key: p.value for p in model.metadata_props}["lupi"])
    assert kept == json.loads((shipped["onnx"] / "student.json").read_text())
    assert set(kept["images"].pop("typical")) == {"brightness", "contrast", "colour", "detail"}
    assert kept["images"] == {
        "stored_size": 20,
        "image_size": 16,
        "n_channels": 3,
        "fit": "crop",
    }
    assert kept["target"]["classes"] == ["cats", "dogs"]


def test_the_graph_is_that_of_a_plain_network(shipped: dict[str, Path], tmp_path: Path) -> None:
    student = lupi.load_student(shipped["torch"])
    plain = student.description.build()
    write_onnx(plain, torch.rand(2, 3, 16, 16), tmp_path / "plain.onnx", {})
    files = (shipped["onnx"] / "student.onnx", tmp_path / "plain.onnx")
    ops = [[node.op_type for node in onnx.load(path).graph.node] for path in files]
    assert ops[0] == ops[1]


def test_a_student_that_became_another_is_not_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_others(path: Path, weights: dict[str, Any]) -> None:
        save_weights(path, {**weights, "head.out.bias": weights["head.out.bias"] + 0.001})

    monkeypatch.setattr("lupi.ship.export.save_weights", save_others)
    with pytest.raises(LupiError, match=r"differ by 0.001 .*limit: 0.0001"):
        export(run, tmp_path / "shipped", "torch")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(LupiError, match="already exists"):
        export(run, tmp_path / "mine", "torch")


def test_a_foreign_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "student.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(LupiError, match="can't be read as an ONNX student"):
        OnnxNetwork(path)
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in ("a", "b")]
    node = onnx.helper.make_node("Relu", ["a"], ["b"])
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    onnx.save(model, path)
    with pytest.raises(LupiError, match=r"not a lupi student: .* got a and b"):
        OnnxNetwork(path)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)
