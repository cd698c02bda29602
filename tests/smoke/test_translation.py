"""Translation as docs/translation.md has it, on a small made language."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sacrebleu.metrics.bleu import BLEU

from made_images import save_image
from made_text import write_texts
from the_command import inside

PAGE = (Path(__file__).parents[2] / "docs/translation.md").read_text()
SMALL = {
    "network": {"n_units": 16},
    "train": {"epochs": 2, "batch_size": 16, "lr": 0.01},
    "sizes": [60],
    "seeds": 1,
}
NETWORKS = """
from torch import nn

def small():
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 10))
"""


def shell(script: str, cwd: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PATH": path, **variables},
    )
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, the page's settings made small, and its first commands done."""
    folder = tmp_path_factory.mktemp("translation")
    write_texts(folder / "texts")
    (settings,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    (folder / "texts.yaml").write_text(yaml.safe_dump(yaml.safe_load(settings) | SMALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        do(commands()[0])
    return folder


def do(script: str) -> None:
    for line in script.splitlines():
        code, _, said = inside(*shlex.split(line, comments=True)[1:])
        assert code == 0, f"{line}\n{said}"


def commands() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)


def run_of(folder: Path, arm: str) -> Path:
    record = json.loads((folder / "runs/texts/comparison.json").read_text())
    (run_id,) = [str(run["run_id"]) for run in record["runs"] if run["arm"] == arm]
    return folder / "runs/texts" / run_id


def test_the_pages_commands_run_and_its_scores_are_the_recorded_ones(folder: Path) -> None:
    run, other = run_of(folder, "het-dropout"), run_of(folder, "no-xstar")
    printed = shell(commands()[1], folder, RUN=str(run))
    assert (folder / "test.de").read_text() == (run / "test.txt").read_text()
    recorded = json.loads((run / "result.json").read_text())
    bleu, chrf = json.loads(printed)
    assert bleu["score"] == pytest.approx(recorded["metrics"]["test"]["bleu"], abs=0.051)
    assert chrf["score"] == pytest.approx(recorded["metrics"]["test"]["chrf"], abs=0.051)
    assert bleu["signature"] == recorded["signatures"]["bleu"]
    references = (folder / "texts/test.de").read_text().splitlines()
    lines = (run / "test.txt").read_text().splitlines()
    exact = BLEU(lowercase=True, tokenize="none", force=True).corpus_score(lines, [references])
    assert exact.score == recorded["metrics"]["test"]["bleu"]
    paired = shell(commands()[3], folder, RUN=str(run), OTHER_RUN=str(other))
    assert "p = " in paired or "p_value" in paired


def test_vectors_of_images(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    (folder / "my_networks.py").write_text(NETWORKS)
    for i in range(3):
        save_image(folder / f"images/{i}.jpg", seed=i)
    do(commands()[2])
    assert (folder / "vectors.npz").exists()


def test_the_verdict_is_in_bleu(folder: Path) -> None:
    summary = json.loads(inside("report", str(folder / "runs/texts"), "--json")[1])
    assert summary["metric"] == "bleu"
    assert summary["n_finished"] == 5


def test_the_student_of_a_run_is_a_plain_network(folder: Path) -> None:
    from lupi.train.checkpoint import load_weights

    students = {
        arm: load_weights(run_of(folder, arm) / "checkpoint/student.safetensors")
        for arm in ("no-xstar", "het-dropout", "imagination")
    }
    assert set(students["het-dropout"]) == set(students["no-xstar"]) == set(students["imagination"])


def test_odd_lines(folder: Path) -> None:
    text = "dog cat .\n\n" + "dog " * 150 + "\n猫 \u2028 dog"
    run = str(run_of(folder, "no-xstar"))
    code, out, err = inside("translate", run, "--beam", "2", stdin=text.encode())
    assert code == 0
    assert out.count("\n") == 4
    assert out.split("\n")[1] == ""
    assert "line 3 is too long; only its first 100 tokens are translated" in err


def test_bytes_that_are_not_text_end_in_a_message(folder: Path) -> None:
    run = str(run_of(folder, "no-xstar"))
    code, _, err = inside("translate", run, stdin=b"dog\n\xff\xfe\n")
    assert code == 2
    assert err == (
        "error: stdin, line 2: byte 0xff at place 1 is not UTF-8; convert the text, for instance "
        "with `iconv -f latin1 -t utf-8`\n"
    )


def test_folders_that_do_not_translate(folder: Path, tmp_path: Path) -> None:
    from lupi.errors import LupiError
    from lupi_paper.translation.saved import load_translator

    with pytest.raises(LupiError, match="holds 5 runs; give one of them"):
        load_translator(folder / "runs/texts")
    with pytest.raises(LupiError, match="holds no finished run"):
        load_translator(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    settings = json.loads((run_of(folder, "no-xstar") / "settings.json").read_text())
    for changes, message in (
        ({"method": "oracle", "settings": {}}, "can't translate without x"),
        ({"task": {"name": "digits"}, "network": {}}, "a run of task digits, not of translation"),
        ({}, "has no student"),
    ):
        (tmp_path / "settings.json").write_text(json.dumps(settings | changes))
        with pytest.raises(LupiError, match=message):
            load_translator(tmp_path)
