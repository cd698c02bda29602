"""The real command, as a user runs it."""

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import Here
from made_records import ARMS, make_records
from made_table import rows, write_csv
from small_comparison import SMALL, results
from the_command import lupi, started


@pytest.fixture
def settings(tmp_path: Path) -> str:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL))
    return "small.yaml"


VERBS = [
    "demo",
    "plan",
    "compare",
    "train",
    "report",
    "export",
    "predict",
    "translate",
    "features",
    "methods",
    "analyse",
    "bounds",
]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_teaches_within_80_columns(here: Here, verb: str) -> None:
    code, text, _ = here(*([verb] if verb else []), "--help")
    assert code == 0
    assert "Usage" in text
    assert max(map(len, text.splitlines())) <= 80


def test_from_settings_to_verdict(tmp_path: Path, settings: str, here: Here) -> None:
    done = lupi("compare", settings, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["n_finished"] == 12
    cell = summary["arms"][1]["cells"][0]
    assert cell["verdict"] == "underpowered"
    assert {"mean", "interval", "p_value", "label_saving", "n_collapsed", "n_diverged"} <= set(cell)
    assert (tmp_path / "runs/small/report.html").stat().st_size > 100_000
    _, again, said = here("compare", settings, "--json")
    assert "0 of 12 runs to do" in said
    assert json.loads(again) == summary
    assert json.loads(here("report", "runs/small", "--json")[1]) == summary
    text = here("report", "runs/small")[1]
    assert "het-dropout/shuffled" in text
    assert max(map(len, text.splitlines())) <= 80


def test_until_decided(here: Here, settings: str) -> None:
    code, printed, said = here("compare", settings, "--until-decided", "--max-seeds", "2", "--json")
    assert code == 0
    assert json.loads(printed)["looks"] == [2]
    assert "first look at 2 seeds" in said
    assert "the budget of 2 seeds is used up; without an answer: het-dropout at n = 20" in said
    code, _, said = here("compare", settings, "--max-seeds", "9")
    assert code == 2
    assert "--max-seeds is for --until-decided" in said


def test_an_underpowered_plan_is_said_before_the_first_run(here: Here, settings: str) -> None:
    """It ran for minutes before it said so."""
    said = here("compare", settings, *SHORT)[2]
    assert "underpowered: 1 seed can't give a verdict on x*; it needs at least 6" in said
    assert said.index("underpowered") < said.index("runs to do")


def test_a_comparison_with_a_failed_run_does_not_end_well(here: Here, settings: str) -> None:
    """It exited with 0."""
    assert here("compare", settings, *SHORT)[0] == 0
    run = next(Path("runs/small").glob("*/result.json")).parent
    shutil.rmtree(run)
    run.write_text("a file where a folder has to be")
    code, _, said = here("compare", settings, *SHORT)
    assert code == 1
    assert "1 of 3 runs have no result" in said


def test_a_gain_that_no_score_can_have_is_refused(here: Here, tmp_path: Path) -> None:
    """`--gain 2.0`, the default, meant 2.0 of r2."""
    write_csv(tmp_path / "rows.csv", rows())
    task = {"name": "table", "path": "rows.csv", "target": "hours", "privileged": ["rain"]}
    raw = {
        "name": "rows",
        "task": {**task, "ignore": ["late"]},
        "arms": {"no-xstar": {"method": "no-xstar"}, "het": {"method": "het-dropout"}},
        "sizes": [20],
        "seeds": 2,
    }
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(raw))
    code, _, said = here("plan", "rows.yaml", "--gain", "2.0")
    assert code == 2
    assert "--gain: got 2, but r2 is at most 1" in said


def test_train_shows_stages_that_do_not_validate(here: Here, settings: str) -> None:
    code, out, err = here("train", settings, "--set", "arms={d: {method: distillation}}")
    assert code == 0, err
    assert re.search(r"^accuracy +0\.\d+ +0\.\d+$", out, flags=re.MULTILINE)


def test_train_writes_the_record_that_compare_reuses(here: Here, settings: str) -> None:
    arguments = ("train", settings, "--arm", "het-dropout", "--size", "20", "--seed", "1")
    result = json.loads(here(*arguments, "--json")[1])
    assert Path(result["folder"], "checkpoint/student.safetensors").exists()
    assert f"{result['metrics']['test']['accuracy']:.4f}" in here(*arguments)[1]
    assert "11 of 12 runs to do" in here("compare", settings)[2]


@pytest.mark.usefixtures("few_simulations")
def test_plan_leaves_runs_that_compare_reuses(here: Here, settings: str) -> None:
    short = ("--set", "train.epochs=1", "--set", "seeds=3")
    arguments = ("plan", settings, "--gain", "5", "--pilot", "2", "--size", "20", *short)
    _, printed, said = here(*arguments, "--json")
    assert "3 arms x 1 size x 2 seeds: 6 of 6 runs to do" in said
    assert "test accuracy" not in said  # the plan must not know who is ahead
    found = json.loads(printed)
    assert (found["gain"], found["n_runs"], found["n_finished"]) == (0.05, 18, 6)
    assert [(row["size"], row["measured_at"]) for row in found["sizes"]] == [(20, 20), (40, 20)]
    _, text, said = here(*arguments)
    assert "figure: runs/small/plan.svg" in said
    assert Path("runs/small/plan.svg").exists()
    assert "12 of 18 runs left with 3 seeds" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "12 of 18 runs to do" in here("compare", settings, *short)[2]


SHORT = ("--set", "seeds=1", "--set", "sizes=[20]", "--set", "train.epochs=3")
TUNED = ("compare", "small.yaml", "--set", "tuning={n_trials: 2, seeds: 1}", *SHORT)


@pytest.mark.usefixtures("settings")
def test_a_tuned_comparison_killed_during_its_trials_ends_with_the_same(
    tmp_path: Path, here: Here
) -> None:
    whole = json.loads(here(*TUNED, "--json", "--out", "undisturbed")[1])
    assert len(whole["tuning"]["candidates"]) == 2 * 3
    assert sum(tried["chosen"] for tried in whole["tuning"]["candidates"]) == 3
    process = started(*TUNED, "--out", "killed", cwd=tmp_path)
    while process.poll() is None and count_rows(tmp_path / "killed") < 4:
        time.sleep(0.02)
    assert process.poll() is None, "finished before it could be killed"
    process.kill()
    process.wait()
    report = json.loads(here("report", "killed", "--json")[1])
    assert any(warning.startswith("tuning is unfinished") for warning in report["warnings"])
    assert json.loads(here(*TUNED, "--json", "--out", "killed")[1]) == whole
    assert results(tmp_path / "killed") == results(tmp_path / "undisturbed")


def count_rows(folder: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob("*/metrics.jsonl"))


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, settings: str) -> None:
    endless = ("--set", "train.epochs=500")
    process = started("compare", settings, *endless, cwd=tmp_path, stderr=subprocess.PIPE)
    while count_rows(tmp_path / "runs/small") < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command to resume" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "none.yaml"], "none.yaml: no such file, and no settings file is called"),
        (["compare", "small.yaml", "--set", "train.epochs=0"], "train.epochs: got 0"),
        (["compare", "small.yaml", "--set", "train"], "--set takes key.path=value"),
        (["compare", "small.yaml", "--set", "train.epoks=3"], "did you mean `epochs`"),
        (
            ["compare", "small.yaml", "--address", "auto"],
            "--address is for --engine ray",
        ),
        (["compare", "small.yaml", "--minutes", "9"], "--minutes is for --engine slurm"),
        (
            ["compare", "small.yaml", "--engine", "slurm", "--sbatch", "gpu"],
            "--sbatch takes KEY=VALUE",
        ),
        (["train", "small.yaml", "--arm", "het"], "did you mean `het-dropout`"),
        (["train", "small.yaml", "--size", "0"], "size: got 0"),
        (["train", "small.yaml", "--set", "tuning.seeds=1"], "are still to be tuned"),
        (["plan", "small.yaml", "--size", "30"], "--size: got 30; the sizes of the comparison"),
        (["plan", "small.yaml", "--set", "seeds=1"], "a pilot needs at least two seeds"),
        (["report", "."], "holds no comparison"),
        (["methods", "hetdropout"], "did you mean `het-dropout`"),
    ],
)
def test_mistakes_end_in_a_message(
    settings: str, here: Here, arguments: list[str], message: str
) -> None:
    code, stdout, stderr = here(*arguments)
    assert code == 2
    assert message in stderr
    assert stdout == "" or ("--json" in arguments and set(json.loads(stdout)) == {"error"})


def test_a_mistake_shows_no_traceback(tmp_path: Path) -> None:
    done = lupi("compare", "none.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: none.yaml: no such file, and no settings file is called")
    assert "Traceback" not in done.stderr


def test_methods(here: Here) -> None:
    listed: dict[str, Any] = json.loads(here("methods", "--json")[1])
    assert {"no-xstar", "gaussian-dropout", "het-dropout"} <= {m["name"] for m in listed["methods"]}
    assert "prior" in here("methods", "het-dropout")[1]
    assert max(map(len, here("methods")[1].splitlines())) <= 80


def test_demo_prints_its_settings(here: Here) -> None:
    settings = yaml.safe_load(here("demo", "--print-settings")[1])
    assert settings["name"] == "demo"
    assert {"no-xstar", "het-dropout", "guided-attention"} <= set(settings["arms"])


@pytest.fixture
def made(tmp_path: Path) -> str:
    make_records(tmp_path / "made", arms=ARMS[:3], sizes=(20, 40), n_seeds=2, images=False)
    return "made"


def test_report_in_other_forms(made: str, here: Here, tmp_path: Path) -> None:
    assert here("report", made, "--format", "latex")[1].count(r"\\") == 1 + 3
    assert here("report", made, "--format", "csv")[1].count("\n") == 1 + (1 + 1 + 2) * 2
    code, _, stderr = here("report", made, "--figures", "paper")
    assert code == 0
    assert "figure: paper/learning-curves.pdf" in stderr
    assert (tmp_path / "paper/learning-curves.svg").exists()


def test_what_the_system_refuses_ends_in_a_message(made: str, here: Here, tmp_path: Path) -> None:
    (tmp_path / "paper").write_text("a file where a folder should be")
    code, _, stderr = here("report", made, "--figures", "paper")
    assert code == 2
    assert "File exists: 'paper'. Finished runs are saved" in stderr


def test_plan_says_first_what_it_trains(here: Here, settings: str) -> None:
    arguments = ("plan", settings, "--pilot", "2", "--size", "20", "--workers", "2", "--no-pilot")
    code, printed, _ = here(*arguments)
    text = " ".join(printed.split())
    assert code == 0
    assert "2 seeds at n = 20, 2 at a time, in runs/small; how long is shown" in text
    assert not Path("runs").exists()
    code, printed, _ = here(*arguments, "--json")
    work = json.loads(printed)
    assert f"trains {work['n_runs']} of the {work['n_all']} runs" in text
    assert (work["sizes"], work["seconds"]) == ([20], None)
