"""From a comparison to predictions, through the real command."""

import csv
import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from test_own_table import COLUMNS, SHORT

from conftest import Here
from lupi.escapes import markdown_text
from made_students import image_run, table_run
from made_table import HEADER, rows, write_csv
from the_command import lupi


def test_from_a_csv_to_predictions(tmp_path: Path, here: Here) -> None:
    write_csv(tmp_path / "deliveries.csv", rows())
    arguments = ("compare", "deliveries.csv", *COLUMNS, *SHORT, "--workers", "1")
    assert "lupi export runs/deliveries" in here(*arguments)[2]
    _, out, said = here("export", "runs/deliveries", "--arm", "het", "--out", "shipped")
    assert "het, n = 30, seed 0: validation r2" in said
    assert "test rows differ from the original's by at most 0" in out
    card = (tmp_path / "shipped/MODEL_CARD.md").read_text()
    for words in ("`rain`, `traffic`", "Did x\\* help?", "underpowered", "Limits", "| r2 |"):
        assert words in card
    assert str(tmp_path) not in card
    document = json.loads(here("report", "runs/deliveries", "--json")[1])
    headline, statement = document["headline"], document["statement"]
    for text in (statement["exact"], *statement["notes"]):
        assert markdown_text(text) in card
    assert f"did x* help? {headline}" in said
    assert headline in card
    assert "; verdict: underpowered" in said
    line = "12.5,old,True,2024-05-26,20\n"
    new = ",".join(HEADER[:5]) + "\n" + line
    done = lupi("predict", "shipped", cwd=tmp_path, input=new)
    for printed in (done.stdout, here("predict", "runs/deliveries", stdin=new.encode())[1]):
        assert set(json.loads(printed)) == {"input", "row", "mean", "std"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_run(tmp_path_factory.mktemp("table"), "late")


def test_columns_that_are_not_needed_are_ignored_with_a_word(table: Path, here: Here) -> None:
    write_csv(Path("all.csv"), rows())
    write_csv(Path("x.csv"), [row[:5] for row in rows()], HEADER[:5])
    code, with_xstar, said = here("predict", str(table), "all.csv")
    assert code == 0
    assert "ignored columns, which the student does not use: rain, traffic, hours, late" in said
    _, without, said = here("predict", str(table), "x.csv")
    assert "ignored" not in said
    assert with_xstar.replace("all.csv", "x.csv") == without
    assert len(without.splitlines()) == 120


@pytest.mark.parametrize("batch_size", ["1", "2", "128"])
def test_stop_stops_at_the_first_bad_row(table: Path, here: Here, batch_size: str) -> None:
    """Rows behind it, of the same batch, were predicted."""
    made = rows(6)
    made[3][0] = "far"
    write_csv(Path("new.csv"), made)
    code, printed, said = here("predict", str(table), "new.csv", "--batch-size", batch_size)
    assert code == 2
    assert [json.loads(line)["row"] for line in printed.splitlines()] == [1, 2, 3]
    assert "new.csv, row 4: km is 'far', expected a number" in said.replace("\n", " ")
    _, printed, _ = here("predict", str(table), "new.csv", "--on-bad", "skip")
    assert [json.loads(line)["row"] for line in printed.splitlines()] == [1, 2, 3, 5, 6]


def test_gzip_and_excel_are_the_same_rows(table: Path, here: Here) -> None:
    pytest.importorskip("openpyxl")
    path = write_csv(Path("new.csv"), rows(5))
    Path("new.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    pd.read_csv(path).to_excel("new.xlsx", index=False)
    expected = here("predict", str(table), "new.csv")[1]
    for other in ("new.csv.gz", "new.xlsx"):
        code, printed, said = here("predict", str(table), other)
        assert code == 0, said
        assert printed.replace(other, "new.csv") == expected


def test_csv_out(table: Path, here: Here) -> None:
    write_csv(Path("new.csv"), rows(3))
    found = list(
        csv.DictReader(io.StringIO(here("predict", str(table), "new.csv", "--format", "csv")[1]))
    )
    assert [row["row"] for row in found] == ["1", "2", "3"]
    for row in found:
        assert float(row["p(late)"]) + float(row["p(in time)"]) == pytest.approx(1)
        assert row["prediction"] == max(
            ("late", "in time"), key=lambda name: float(row[f"p({name})"])
        )


def test_bad_rows_stop_or_are_counted(table: Path, here: Here) -> None:
    made = rows(4)
    made[1][0] = "far"
    write_csv(Path("new.csv"), made)
    code, _, said = here("predict", str(table), "new.csv")
    assert code == 2
    assert "new.csv, row 2: km is 'far', expected a number" in said
    assert "--on-bad skip" in said
    code, out, said = here("predict", str(table), "new.csv", "--on-bad", "skip")
    assert code == 0
    assert [json.loads(line)["row"] for line in out.splitlines()] == [1, 3, 4]
    assert "skipped 1 of 4 inputs" in said


def test_images_files_and_folders(tmp_path: Path, here: Here) -> None:
    run = str(image_run(tmp_path))
    code, out, _ = here("predict", run, "pets/cats/0.png", "pets/dogs")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["input"] for line in lines[:2]] == ["pets/cats/0.png", "pets/dogs/0.png"]
    assert len(lines) == 9
    assert set(lines[0]["probabilities"]) == {"cats", "dogs"}
    alone = json.loads(here("predict", run, "-", stdin=b"pets/cats/0.png\n")[1])
    assert alone["input"] == "pets/cats/0.png"
    assert alone["probabilities"] == pytest.approx(lines[0]["probabilities"], abs=1e-5)
    Path("pets/dogs/broken.png").write_bytes(b"nothing")
    code, _, said = here("predict", run, "pets/dogs")
    assert code == 2
    assert "pets/dogs/broken.png: unknown image format" in said.replace("\n", " ")
    code, out, said = here("predict", run, "pets/dogs", "none.png", "--on-bad", "skip")
    assert (code, len(out.splitlines())) == (0, 8)
    assert "skipped 2 of 10 inputs" in said
    assert "No such file" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "nowhere"], "holds no finished run"),
        (["export", "nowhere", "--out", "x"], "holds no finished run"),
    ],
)
def test_mistakes_end_in_a_message(here: Here, arguments: list[str], message: str) -> None:
    code, out, said = here(*arguments)
    assert (code, out) == (2, "")
    assert message in said.replace("\n", " ")
