"""Students for texts, exported and used."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Here
from lupi.errors import LupiError
from lupi.loaders.text.made_reviews import write_reviews
from lupi.permission import allow
from lupi.ship.export import export
from lupi.ship.student import load_student
from lupi.train.run import run
from made_reviews import COLUMNS, write_csv
from made_runs import run_from

TEXTS = ["the handle is awful", "the sound is superb, and the lamp is lovely", "unheard words"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("run"))


def trained(folder: Path, network: dict[str, Any] | None = None, **changes: Any) -> Path:
    write_reviews(folder / "reviews.csv", 120)
    raw = {
        "task": {"name": "text", "path": str(folder / "reviews.csv"), **COLUMNS, **changes},
        "network": network or {},
        "train": {"epochs": 3, "lr": 0.03, "schedule": "constant"},
        "method": "views",
        "size": 40,
        "seed": 0,
    }
    settings = run_from(raw)
    run(settings, folder / settings.run_id)
    return folder / settings.run_id


@pytest.mark.parametrize("format_", ["torch", "onnx"])
def test_an_exported_student_predicts_strings(finished: Path, tmp_path: Path, format_: Any) -> None:
    exported = export(finished, tmp_path / "shipped", format_)
    assert exported.difference < 1e-5
    predicted = load_student(exported.folder).predict(TEXTS)
    expected = load_student(finished).predict(TEXTS)
    for one, other in zip(predicted, expected, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
        assert set(one["probabilities"]) == {"good", "bad"}
    card = (exported.folder / "MODEL_CARD.md").read_text()
    assert "of a text" in card
    assert "the rationale of each text" in card
    assert "spans" not in (exported.folder / "student.json").read_text()  # nothing of x*


@pytest.mark.parametrize("name", ["cnn", "lstm"])
def test_networks_are_exported_for_texts_of_any_length(tmp_path: Path, name: str) -> None:
    folder = trained(tmp_path, {"name": name, "n_channels": 4})
    student = load_student(export(folder, tmp_path / "shipped", "onnx").folder)
    alone = [student.predict([text])[0]["probabilities"] for text in TEXTS]
    together = [p["probabilities"] for p in student.predict(TEXTS)]
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_a_prediction_waits_for_torch_alone(finished: Path) -> None:
    """… and not for what torch imports where weights are initialised or compiled."""
    code = (
        "import sys; from lupi.ship.student import load_student\n"
        f"load_student({str(finished)!r}).predict(['a good film'])\n"
        "print(*{'torch._dynamo', 'sympy', 'scipy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ
    )
    assert not done.stdout.split()


def test_unknown_words_and_rationale_tags_change_nothing(tmp_path: Path) -> None:
    rows = [["review", "label"]]
    rows += [[f"a <r>{w}</r> film", w] for w in ("good", "bad") for _ in range(20)]
    write_csv(tmp_path / "tagged.csv", rows)
    columns = {**COLUMNS, "rationale": "review"}
    task = {"name": "text", "path": str(tmp_path / "tagged.csv"), **columns}
    raw = {"task": task, "train": {"epochs": 1}, "method": "no-xstar", "size": 10, "seed": 0}
    settings = run_from(raw)
    run(settings, tmp_path / "run")
    student = load_student(tmp_path / "run")
    same = ["a good film", "a <r>good</r> film", "a good unheard film", "A GOOD </r> FILM"]
    outputs = student.outputs(student.encode(same))
    assert outputs.isfinite().all()
    assert all((row == outputs[0]).all() for row in outputs)


@pytest.mark.parametrize("given", ["a film", [1], ["fine", " "], None])
def test_what_is_no_list_of_texts_is_refused(finished: Path, given: Any) -> None:
    with pytest.raises(LupiError, match=r"expected a list of strings|it contains no words"):
        load_student(finished).predict(given)


def test_strings_files_and_pipes_give_the_same(
    finished: Path, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "new.csv", [["id", "review"], *([str(i), t] for i, t in enumerate(TEXTS))])
    lines = [json.dumps({"review": text}) + "\n" for text in TEXTS]
    (tmp_path / "new.jsonl").write_text("".join(lines))
    (tmp_path / "new.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    strings = [word for text in TEXTS for word in ("--input", text)]

    def predicted(*arguments: str) -> list[Any]:
        code, printed, said = here("predict", str(finished), *arguments)
        assert code == 0, said
        return [json.loads(line)["probabilities"] for line in printed.splitlines()]

    first = predicted(*strings)
    assert len(first) == 3
    for name in ("new.csv", "new.jsonl", "new.txt"):
        assert predicted(name) == first
    assert predicted(*strings, "new.csv") == [*first, *first]


def test_bad_texts_stop_or_are_skipped(finished: Path, tmp_path: Path, here: Here) -> None:
    write_csv(tmp_path / "new.csv", [["review"], ["fine"], [" "], ["good"]])
    code, printed, said = here("predict", str(finished), "new.csv")
    assert code == 2
    assert "new.csv, row 2: it contains no words" in said.replace("\n", " ")
    code, printed, said = here("predict", str(finished), "new.csv", "--on-bad", "skip")
    assert code == 0
    assert [json.loads(line)["row"] for line in printed.splitlines()] == [1, 3]
    assert "skipped 1 of 3 inputs" in said
    write_csv(tmp_path / "other.csv", [["text"], ["fine"]])
    code, _, said = here("predict", str(finished), "other.csv")
    assert code == 2
    assert "no column is called `review`" in said.replace("\n", " ")
    assert here("predict", str(finished), "none.csv")[0] == 2


def test_an_own_encoder_is_exported_as_onnx_alone(tmp_path: Path) -> None:
    allow("test_text_students:make_encoder")
    folder = trained(tmp_path, {"name": "custom", "encoder": "test_text_students:make_encoder"})
    with pytest.raises(LupiError, match="export it as ONNX"):
        load_student(folder)
    student = load_student(export(folder, tmp_path / "shipped", "onnx").folder)
    assert len(student.predict(TEXTS)) == 3


def make_encoder(n_words: int) -> Any:
    from torch import nn

    return nn.Embedding(n_words, 4, padding_idx=0)
