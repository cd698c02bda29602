"""Settings, records and exported students that were changed: an answer, or a word to the user."""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lupi
from hostile_files import N_EXAMPLES, answered, as_json, changed_document, damaged_bytes, fuzzed
from lupi.comparison.plan import check_settings, make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.records import STUDENT, read_comparison
from lupi.report.page.document import render
from lupi.report.terminal import SummaryTable
from lupi.settings import override, read_yaml
from lupi.ship.export import export
from lupi.ship.inputs import read_inputs
from lupi.ship.manifest import write_manifest
from lupi.ship.pick import pick_run
from lupi.ship.predictor import load_predictor
from lupi.train.finished import read_finished
from lupi.train.run import run
from lupi.verdict.summary import summarise
from lupi_paper.translation.saved import load_translator
from made_records import ARMS, make_records
from made_runs import run_from
from made_students import image_run, table_run, text_run
from made_table import HEADER, rows
from made_text import write_texts

SETTINGS: dict[str, Any] = {
    "name": "small",
    "task": {"name": "digits", "image_size": 16, "noise": 0.1},
    "network": {"width": 2, "n_hidden": 4},
    "train": {"epochs": 2, "batch_size": 16, "lr": 0.01},
    "train_by_size": {"20": {"epochs": 3}},
    "arms": {
        "no-xstar": {"method": "no-xstar", "search": {"train.lr": [0.1, 0.2]}},
        "het-dropout": {
            "method": "het-dropout",
            "settings": {"prior": 1.0},
            "controls": ["shuffled"],
            "xstar_fracs": [0.5, 1],
        },
    },
    "sizes": [20],
    "seeds": 2,
    "tuning": {"n_trials": 2, "seeds": 1},
    "paper": {"source": "here", "scores": {"no-xstar": {"20": 0.5}}},
}


@fuzzed
@given(raw=changed_document(SETTINGS))
def test_settings(raw: Any) -> None:
    with answered():
        check_settings(ComparisonSettings.parse(override(raw, []), ""))


@fuzzed
@given(content=damaged_bytes(yaml.safe_dump(SETTINGS).encode()))
def test_damaged_settings_files(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.yaml"
        path.write_bytes(content)
        with answered():
            check_settings(ComparisonSettings.parse(override(read_yaml(path), []), ""))


@fuzzed
@given(text=st.text(max_size=30), key=st.sampled_from(["task", "train.lr", "a.b", "seeds", ""]))
def test_changes_on_the_command_line(text: str, key: str) -> None:
    with answered():
        make_plan(ComparisonSettings.parse(override(SETTINGS, [f"{key}={text}"]), ""))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records") / "demo"
    return make_records(folder, arms=ARMS[:3], sizes=(20,), n_seeds=2)


def report(folder: Path, page: bool) -> None:
    record = read_comparison(folder)
    summary = summarise(record)
    json.dumps(summary.to_dict(), allow_nan=False)
    SummaryTable(summary)
    if page:
        render(record, summary).encode("utf-8", "replace")
    with suppress(LupiError):
        pick_run(folder)


SOMETIMES = st.integers(0, max(9, N_EXAMPLES // 25)).map(lambda n: n == 9)
"""The page takes a second."""
RECORDS = ["comparison.json", "*/result.json", "*/settings.json", "*/environment.json"]


@pytest.mark.parametrize("pattern", RECORDS)
@fuzzed
@given(data=st.data())
def test_changed_records(pattern: str, records: Path, data: st.DataObject) -> None:
    path = sorted(records.glob(pattern))[0]
    whole = path.read_bytes()
    try:
        path.write_bytes(as_json(data.draw(changed_document(json.loads(whole)))))
        with answered():
            report(records, page=data.draw(SOMETIMES))
    finally:
        path.write_bytes(whole)


def no_name(settings: dict[str, Any]) -> None:
    settings["task"]["name"] = float("nan")


def no_training(settings: dict[str, Any]) -> None:
    settings["train"] = []


def no_runs_of_the_method(comparison: dict[str, Any]) -> None:
    comparison["runs"] = [run for run in comparison["runs"] if run["arm"] != "het-dropout"]


@pytest.mark.parametrize(
    ("pattern", "change", "said"),
    [
        ("*/settings.json", no_name, "NaN is not a finite number"),
        ("*/settings.json", no_training, "was changed or is of another run"),
        ("comparison.json", no_runs_of_the_method, "none of its arms trains with the real x*"),
    ],
)
def test_records_that_once_gave_a_traceback(
    tmp_path: Path, pattern: str, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    folder = make_records(tmp_path / "demo", arms=ARMS[:3], sizes=(20,), n_seeds=2)
    path = sorted(folder.glob(pattern))[0]
    document = json.loads(path.read_text())
    change(document)
    path.write_bytes(as_json(document))
    record = read_comparison(folder)
    assert said in str((record.warnings, summarise(record).statement))


@pytest.mark.parametrize("pattern", [*RECORDS, "*/metrics.jsonl", "*/samples.npz", "*/failure.txt"])
@fuzzed
@given(data=st.data())
def test_damaged_records(pattern: str, records: Path, data: st.DataObject) -> None:
    path = sorted(records.glob(pattern.replace("failure.txt", "result.json")))[0]
    whole = path.read_bytes()
    damaged, page = data.draw(damaged_bytes(whole)), data.draw(SOMETIMES)
    changed = path
    if pattern.endswith("failure.txt"):
        path.unlink()
        changed = path.with_name("failure.txt")
    try:
        changed.write_bytes(damaged)
        with answered():
            report(records, page)
    finally:
        changed.unlink()
        path.write_bytes(whole)


@pytest.mark.parametrize("row", ["[]", "1", '{"epoch": []}', '{"train": 1, "sites": [1]}', "null"])
def test_rows_of_metrics_that_are_something_else(records: Path, row: str) -> None:
    path = sorted(records.glob("*/metrics.jsonl"))[0]
    whole = path.read_bytes()
    try:
        path.write_text(f"{row}\n" * 3)
        report(records, page=True)
    finally:
        path.write_bytes(whole)


def _other_type(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT32


def _fixed_batch(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7


def _other_width(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3


def _text_output(model: Any) -> None:
    """Return strings."""
    node = onnx.helper.make_node("Cast", [model.graph.output[0].name], ["s"], to=8)
    model.graph.node.append(node)
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("s", 8, None))


def _sum(model: Any) -> None:
    """Return one number."""
    last = next(n for n in model.graph.node if "output" in n.output)
    last.output[:] = ["before"]
    model.graph.node.append(onnx.helper.make_node("ReduceSum", ["before"], ["output"], keepdims=0))
    model.graph.output[0].type.tensor_type.ClearField("shape")


def _first_row(model: Any) -> None:
    """Return fewer rows than were given."""
    last = next(n for n in model.graph.node if "output" in n.output)
    last.output[:] = ["before"]
    model.graph.initializer.append(onnx.helper.make_tensor("zero", 7, [1], [0]))
    model.graph.node.append(onnx.helper.make_node("Gather", ["before", "zero"], ["output"], axis=0))
    model.graph.output[0].type.tensor_type.ClearField("shape")


def _integers(model: Any) -> None:
    last = next(n for n in model.graph.node if "output" in n.output)
    last.output[:] = ["before"]
    model.graph.node.append(onnx.helper.make_node("Cast", ["before"], ["output"], to=7))
    model.graph.output[0].type.tensor_type.elem_type = 7


GRAPH_CHANGES: dict[str, Callable[[Any], object]] = {
    "another type": _other_type,
    "a fixed batch": _fixed_batch,
    "another width": _other_width,
    "strings": _text_output,
    "a sum": _sum,
    "one row": _first_row,
    "integers": _integers,
    "no nodes": lambda model: model.graph.ClearField("node"),
    "no weights": lambda model: model.graph.ClearField("initializer"),
    "no output": lambda model: model.graph.ClearField("output"),
    "two inputs": lambda model: model.graph.input.append(model.graph.output[0]),
    "an unknown operator": lambda model: setattr(model.graph.node[0], "op_type", "Exec"),
    "an unknown domain": lambda model: setattr(model.graph.node[0], "domain", "evil"),
    "a future version": lambda model: setattr(model.opset_import[0], "version", 999),
}
"""By what was made of the graph."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_run(tmp_path_factory.mktemp("table"), "late")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image_run(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_run(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def shipped(
    table: Path, images: Path, texts: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    into = tmp_path_factory.mktemp("shipped")
    return [
        export(table, into / "table", "torch").folder,
        export(images, into / "images", "torch").folder,
        export(table, into / "onnx", "onnx").folder,
        export(texts, into / "texts", "torch").folder,
        export(texts, into / "text-onnx", "onnx").folder,
    ]


def use(folder: Path) -> None:
    """Predict as users do: rows of a file, an image, a text."""
    student = lupi.load_student(folder)
    description = student.description
    if description.features is not None:
        lines = [HEADER, *rows(3)]
        new = folder.parent / "new.csv"
        new.write_text("".join(",".join(line) + "\n" for line in lines))
        for batch in read_inputs(load_predictor(folder), [new], [], 2):
            student.explain(student.outputs(torch.from_numpy(batch.x)))
    elif description.images is not None:
        Image.new("RGB", (30, 20), (9, 99, 199)).save(folder.parent / "new.png")
        student.predict([folder.parent / "new.png"])
    else:
        student.predict(["the handle is <r>awful</r>", "superb"])
        for batch in read_inputs(load_predictor(folder), [], ["a lamp\n"], 2):
            student.explain(student.outputs(torch.from_numpy(batch.x)))


@fuzzed
@given(data=st.data())
def test_changed_students(shipped: list[Path], data: st.DataObject) -> None:
    """By someone who makes the sums fit again."""
    which = data.draw(st.sampled_from(shipped))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(which, Path(temporary) / "student"))
        name = data.draw(st.sampled_from(["student.json", "manifest.json", "weights"]))
        path = folder / name
        if name == "weights":
            path = next(p for p in folder.iterdir() if p.suffix in (".onnx", ".safetensors"))
            path.write_bytes(data.draw(damaged_bytes(path.read_bytes())))
        else:
            path.write_bytes(as_json(data.draw(changed_document(json.loads(path.read_text())))))
        if name != "manifest.json":
            write_manifest(folder)
        with answered():
            use(folder)


def test_whole_students_are_used(shipped: list[Path]) -> None:
    for folder in shipped:
        use(folder)


@pytest.mark.parametrize("change", GRAPH_CHANGES)
def test_changed_graphs(shipped: list[Path], tmp_path: Path, change: str) -> None:
    for which in shipped:
        if not (which / "student.onnx").exists():
            continue
        folder = Path(shutil.copytree(which, tmp_path / which.name))
        model = onnx.load(folder / "student.onnx")
        GRAPH_CHANGES[change](model)
        (folder / "student.onnx").write_bytes(model.SerializeToString())
        write_manifest(folder)
        with answered():
            use(folder)


@fuzzed
@given(data=st.data())
def test_changed_runs(table: Path, images: Path, data: st.DataObject) -> None:
    which = data.draw(st.sampled_from([table, images]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(which, Path(temporary) / which.name))
        path = folder / data.draw(st.sampled_from(["settings.json", "preprocessing.json", STUDENT]))
        if path.suffix == ".json":
            path.write_bytes(as_json(data.draw(changed_document(json.loads(path.read_text())))))
        else:
            path.write_bytes(data.draw(damaged_bytes(path.read_bytes())))
        for reader in (use, read_finished):
            with answered():
                reader(folder)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_texts(tmp_path_factory.mktemp("texts"))
    task = {"name": "translation", "root": root, "source": "en", "target": "de", "beam": 2}
    raw = {"task": task, "network": {"n_units": 4}, "train": {"epochs": 1}}
    settings = run_from({**raw, "method": "no-xstar", "size": 20, "seed": 0})
    run(settings, root / settings.run_id)
    return root / settings.run_id


@fuzzed
@given(data=st.data())
def test_changed_translators(translator: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(translator, Path(temporary) / translator.name))
        names = ["settings.json", "source.words.txt", "target.words.txt", STUDENT]
        path = folder / data.draw(st.sampled_from(names))
        if path.suffix == ".json":
            path.write_bytes(as_json(data.draw(changed_document(json.loads(path.read_text())))))
        else:
            path.write_bytes(data.draw(damaged_bytes(path.read_bytes())))
        with answered():
            load_translator(folder).translate(["dog cat ."])
