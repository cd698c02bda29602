"""What people type who use the command for the first time, or in a script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Here
from made_table import HEADER, rows, write_csv
from the_command import LUPI, environment

COLUMNS = ("--target", "hours", "--privileged", "rain,traffic", "--ignore", "late")


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_csv(tmp_path / "deliveries.csv", rows()).name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], ". is a folder; expected a settings file, a table or texts"),
        (["folder"], "folder is a folder; expected a settings file, a table or texts"),
        (["https://example.com/a.csv", *COLUMNS], "is a URL; lupi reads files: download it"),
        (["s3://bucket/a.yaml"], "is a URL; lupi reads files: download it"),
        (["deliveries.csv", *COLUMNS[:2], "--privileged", "rain,"], "empty name in 'rain,'"),
        (["deliveries.csv", "--target", "", "--privileged", "rain"], "needs `target`"),
        (["deliveries.csv", *COLUMNS, "--groups", ""], "groups: no column is called ``"),
    ],
)
@pytest.mark.parametrize("verb", ["compare", "train", "plan"])
def test_mistakes_end_in_a_message(
    table: str, here: Here, verb: str, arguments: list[str], message: str
) -> None:
    Path("folder").mkdir()
    code, stdout, said = here(verb, *arguments)
    assert code == 2
    assert message in said.replace("\n", " ")
    assert stdout == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.epocs=3", "error: train.epocs: no such key"),
        ("train.lr=-3", "error: train.lr: got -3"),
        ("network.n_hiden=3", "error: network.n_hiden: no such key"),
        ("sizes=[61]", "error: a training set of 61 rows was asked for"),
        ("arms.het-dropout.train.epocs=3", "error: arm het-dropout: train.epocs: no such key"),
        ("arms.het-dropout.settings.bet=3", "error: arm het-dropout: settings.bet: no such key"),
    ],
)
def test_an_arm_is_blamed_for_its_own_settings_only(
    table: str, here: Here, change: str, message: str
) -> None:
    """All were "arm no-xstar: …"."""
    code, _, said = here("compare", table, *COLUMNS, "--set", change)
    assert code == 2
    assert message in said.replace("\n", " ")


def test_an_error_is_json_where_json_was_asked_for(here: Here) -> None:
    """stdout was empty, and a program could not tell why."""
    code, printed, said = here("compare", "none.yaml", "--json")
    assert code == 2
    assert "none.yaml: no such file" in json.loads(printed)["error"]
    assert "none.yaml: no such file" in said


def test_numbers_are_written_as_python_writes_them(tmp_path: Path, here: Here) -> None:
    """Messages said np.float64(1.0)."""
    write_csv(tmp_path / "same.csv", [["1.5", "2", "3"]] * 40, ["a", "b", "y"])
    code, _, said = here("compare", "same.csv", "--target", "y", "--privileged", "b")
    assert code == 2
    assert "target 'y' is 3 in every row" in said


def test_names_with_commas(tmp_path: Path, here: Here) -> None:
    header = [*HEADER[:5], '"rain, mm"', *HEADER[6:]]
    write_csv(tmp_path / "deliveries.csv", rows(), header)
    code, printed, said = here(
        *("compare", "deliveries.csv", "--target", "hours", "--ignore", "late"),
        *("--privileged", 'traffic,"rain, mm"', "--print-settings"),
    )
    assert code == 0, said
    assert "rain, mm" in printed


def test_train_on_a_table(table: str, here: Here) -> None:
    code, printed, said = here(
        *("train", table, *COLUMNS, "--arm", "het-dropout", "--size", "30", "--quiet"),
        *("--set", "train.epochs=1", "--set", "train.steps_per_epoch=2"),
    )
    assert code == 0, said
    assert printed.split()[:2] == ["val", "test"]
    assert said == ""


@pytest.mark.usefixtures("few_simulations")
def test_plan_on_a_table(table: str, here: Here) -> None:
    few = "arms={no-xstar: {method: no-xstar}, het: {method: het-dropout}}"
    code, printed, said = here(
        *("plan", table, *COLUMNS, "--gain", "0.1", "--pilot", "2", "--json", "--quiet"),
        *("--set", "sizes=[30]", "--set", "train.epochs=1", "--set", few, "--workers", "1"),
    )
    assert code == 0, said
    assert json.loads(printed)["n_runs"] == 20
    assert said == ""


@pytest.mark.parametrize("arguments", [["demo", "--print-settings"], ["methods"], ["--help"]])
def test_a_reader_that_has_read_enough(tmp_path: Path, arguments: list[str]) -> None:
    """`lupi ... | head` ended in a traceback."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*LUPI, *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")  # as other Unix tools


def test_shells_complete_verbs_and_options(tmp_path: Path) -> None:
    asked = {
        "_LUPI_COMPLETE": "complete_bash",
        "COMP_WORDS": "lupi compare --until",
        "COMP_CWORD": "2",
    }
    code = (
        "import sys; sys.argv = ['lupi']\n"
        "from lupi.cli.app import app\n"
        "try: app(prog_name='lupi')\n"
        "finally: assert 'torch' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(**asked),
        check=False,
    )
    assert done.stdout.split() == ["--until-decided"], done.stderr


def test_exit_codes_are_in_the_help(here: Here) -> None:
    text = " ".join(here("--help")[1].split())
    assert "Exit codes: 0 success, 1 a run failed, 2 an error" in text


def test_decimal_commas_are_told(tmp_path: Path, here: Here) -> None:
    """Each number was a category of its own."""
    header, made = ["a", "s", "y"], [[f"{i},5", f"{i % 7},25", f"{i % 3},1"] for i in range(60)]
    lines = [";".join(row) for row in [header, *made]]
    (tmp_path / "commas.csv").write_text("\n".join(lines) + "\n")
    arguments = ("compare", "commas.csv", "--target", "y", "--privileged", "s", "--print-settings")
    code, _, said = here(*arguments)
    assert code == 2
    said = " ".join(said.split())
    assert "column 'y' has decimal commas, as in '0,1'; use --set task.decimal=','" in said
    code, printed, said = here(*arguments, "--set", "task.decimal=','")
    assert code == 0, said
    assert "decimal: ','" in printed


def test_a_table_from_stdin(table: str, here: Here) -> None:
    content = Path(table).read_bytes()
    arguments = ("train", "-", *COLUMNS, "--arm", "linear", "--size", "30")
    code, printed, said = here(*arguments, stdin=content)
    assert code == 0, said
    assert printed.split()[:2] == ["val", "test"]
    (kept,) = Path("runs").glob("stdin-*/data/*.csv")
    assert kept.read_bytes() == content
    assert here(*arguments, stdin=content)[1] == printed
    assert len(list(Path("runs").iterdir())) == 1
    code, _, said = here("compare", "-", stdin=content)
    assert code == 2
    assert "stdin is taken for a table, which needs `target` and `privileged`" in said


def test_devices(table: str, here: Here) -> None:
    short = ("--set", "train.epochs=1", "--set", "train.steps_per_epoch=2", "--size", "30")
    arguments = ("train", table, *COLUMNS, *short)
    code, _, said = here(*arguments, "--device", "cpu")
    assert code == 0, said
    (environment_file,) = Path("runs").glob("*/*/environment.json")
    assert json.loads(environment_file.read_text())["device"] == "cpu"
    code, _, said = here(*arguments, "--device", "cuda:99")
    assert code == 2
    assert "train.device: there is no cuda:99 here; torch has" in said
    code, _, said = here(*arguments, "--device", "gpu")
    assert code == 2
    assert "error: train.device: got 'gpu'" in said
