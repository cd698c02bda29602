"""What the command prints: nothing of a file controls the terminal, and no output ends it badly."""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
import yaml
from rich.text import Text

from conftest import Here
from lupi.cli.app import app
from lupi.cli.options import COLUMNS
from lupi.escapes import csv_cell, visible
from lupi.interface.console import PlainConsole
from made_table import HEADER, rows
from small_comparison import RAW
from the_command import environment, started

ESCAPES = "\x1b]0;owned\x07\x1b[8m\x9b31m\x08\u202e"


def test_control_characters_are_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert visible(f"a\tb\n{ESCAPES}é…") == (
        "a\tb\n\\x1b]0;owned\\x07\\x1b[8m\\x9b31m\\x08\\u202eé…"
    )
    assert visible(os.fsdecode(b"\xff.csv")) == "\\udcff.csv"
    console = PlainConsole(force_terminal=True, color_system="standard", width=200)
    console.print(Text(f"x{ESCAPES}y", "red"))
    printed = capsys.readouterr().out
    assert printed.startswith("\x1b[31mx\\x1b]0;owned")
    assert printed.count("\x1b") == 2  # red, and its end


def test_messages_contain_no_escapes_of_files(tmp_path: Path, here: Here) -> None:
    (tmp_path / "a.csv").write_text(f"a{ESCAPES},b\n1,2\n")
    code, _, said = here("compare", "a.csv", "--target", "c", "--privileged", "b")
    assert code == 2
    assert "\\x1b" in said
    assert "\x1b" not in said


def test_brackets_in_a_folder_are_no_markup(tmp_path: Path, here: Here) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(RAW))
    code, printed, said = here("compare", "small.yaml", "--out", "run [/x]", "--json")
    assert code == 0, said
    assert "run [/x]/report.html" in said
    assert json.loads(printed)
    code, _, said = here("report", "run [/x]")
    assert code == 0
    assert "run [/x]/report.html" in said


def table(path: Path | bytes) -> None:
    lines = "".join(",".join(line) + "\n" for line in [HEADER, *rows(40)])
    with open(path, "w") as file:  # noqa: PTH123  # a name in bytes
        file.write(lines)


def test_file_names_that_are_not_utf8_work_or_are_named(tmp_path: Path, here: Here) -> None:
    table(os.fsencode(tmp_path) + b"/\xff.csv")
    name, odd = os.fsdecode(b"\xff.csv"), os.fsdecode(b"\xfe")
    columns = ("--target", "late", "--privileged", "traffic")
    few = ("--set", "seeds=1", "--set", "sizes=[20]", "--set", "train.epochs=1")
    code, _, said = here("compare", name, *columns, *few, "--out", odd)
    assert code == 2
    assert "\\udcfe is not valid UTF-8; choose another name" in said
    code, _, said = here("compare", name, *columns, *few, "--out", "out")
    assert code == 0, said
    export = ("export", "out", "--arm", "no-xstar", "--out")
    assert "is not valid UTF-8" in here(*export, odd)[2]
    assert here(*export, "student")[0] == 0
    code, printed, said = here("predict", "student", name, "--format", "csv")
    assert code == 0, said
    assert printed.count("\\udcff.csv") == 40
    missing = [("report", name), ("compare", os.fsdecode(b"\xfe.yaml"))]
    for command in (*missing, ("export", name, "--out", "x")):
        code, _, said = here(*command)
        assert code == 2
        assert "\\udcf" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_output_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    for command in (("methods", "--json"), ("methods",), ("compare", "none.yaml", "--json")):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "lupi", *command],
                cwd=tmp_path,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env=environment(),
            )
        assert done.returncode == 2
        assert "error:" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def test_a_second_train_of_one_run_says_that_it_waits(tmp_path: Path) -> None:
    raw = {**RAW, "train": {"epochs": 100_000, "batch_size": 16, "schedule": "constant"}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(raw))
    command = ("train", "small.yaml", "--out", "out")
    first = started(*command, cwd=tmp_path)
    while first.poll() is None and not list(tmp_path.glob("out/*/metrics.jsonl")):
        time.sleep(0.05)
    second = started(*command, cwd=tmp_path, stderr=subprocess.PIPE)
    assert second.stderr is not None
    try:
        for line in second.stderr:
            if "another lupi is training this run" in line:
                break
        else:
            pytest.fail("it said nothing")
    finally:
        for process in (first, second):
            process.kill()
            process.wait()
        second.stderr.close()


def test_a_spreadsheet_finds_no_formula() -> None:
    for text in ("=1+1", "+1+1", "-1+1", "@sum", "\t=1", "\r=1"):
        assert csv_cell(text) == f"'{text}"
    for value in ("-1", "+1e3", "-inf", "a=1", "", None, -1.5):
        assert csv_cell(value) is value


def test_predictions_and_cards_escape_names(tmp_path: Path, here: Here) -> None:
    html, formula = "<img src=x onerror=alert(1)>", '=HYPERLINK("http://x")'
    lines = [HEADER, *rows(60)]
    place = HEADER.index("late")
    for line in lines[1:]:
        quoted = '"' + formula.replace('"', '""') + '"'
        line[place] = html if line[place] == "late" else quoted
    (tmp_path / "a.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    columns = ("--target", "late", "--privileged", "traffic", "--ignore", "hours")
    few = ("--set", "train.epochs=1", "--arm", "no-xstar", "--out", "out")
    code, _, said = here("train", "a.csv", *columns, *few)
    assert code == 0, said
    assert here("export", "out", "--out", "student")[0] == 0
    card = (tmp_path / "student/MODEL_CARD.md").read_text()
    assert html not in card
    assert "\\<img src=x onerror=alert(1)\\>" in card
    code, printed, _ = here("predict", "student", "a.csv", "--format", "csv")
    assert code == 0
    read = list(csv.reader(printed.splitlines()))
    assert {row[2] for row in read[1:]} <= {html, f"'{formula}"}
    assert not any(cell.startswith("=") for row in read for cell in row)


@pytest.mark.parametrize("verb", ["compare", "train", "plan"])
def test_verbs_take_the_same_options_about_data(verb: str) -> None:
    group = typer.main.get_command(app)
    command = group.commands[verb]  # type: ignore[attr-defined]
    given = {option.name: option.multiple for option in command.params if option.name in COLUMNS}
    assert list(given) == list(COLUMNS)
    assert {name for name, several in given.items() if several} == {
        "privileged",
        "rationale",
        "ignore",
    }
