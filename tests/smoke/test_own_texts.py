"""Someone's own texts, through the real command."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Here
from lupi.loaders.text.made_reviews import write_reviews

COLUMNS = ("--text", "review", "--target", "label", "--rationale", "spans")
FEW = "arms={no-xstar: {method: no-xstar}, views: {method: views}, oracle: {method: oracle}}"
SHORT = ("--set", "seeds=1", "--set", "sizes=[30]", "--set", "train.epochs=2", "--set", FEW)


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    write_reviews(tmp_path / "reviews.csv", 160)
    return "reviews.csv"


def test_from_columns_to_verdict(reviews: str, tmp_path: Path, here: Here) -> None:
    arguments = ("compare", reviews, *COLUMNS, *SHORT, "--workers", "1", "--json")
    code, printed, said = here(*arguments)
    assert code == 0
    assert "rationales of 160 texts (read as spans)" in " ".join(said.split())
    summary = json.loads(printed)
    assert (summary["comparison"], summary["metric"], summary["n_finished"]) == (
        *("reviews", "accuracy"),
        3,
    )
    assert "0 of 3 runs to do" in here(*arguments)[2]
    write_reviews(tmp_path / reviews, 161)
    assert "3 of 3 runs to do" in here(*arguments)[2]  # the texts are others


def test_printed_settings_stand_for_the_same_comparison(reviews: str, here: Here) -> None:
    code, printed, _ = here("compare", reviews, *COLUMNS, "--print-settings")
    assert code == 0
    raw = yaml.safe_load(printed)
    assert raw["task"] == {
        "name": "text",
        "path": reviews,
        "text": "review",
        "target": "label",
        "rationale": ["spans"],
    }
    assert raw["sizes"] == [20, 40, 80]
    assert raw["arms"]["het-dropout"]["controls"] == ["shuffled", "random"]
    Path("reviews.yaml").write_text(printed)
    assert here("compare", "reviews.yaml", "--print-settings")[1] == printed


def test_a_word_list_becomes_a_control(reviews: str, tmp_path: Path, here: Here) -> None:
    (tmp_path / "words.txt").write_text("great\nawful\n")
    options = ("--set", "task.lexicon=words.txt", "--print-settings")
    raw = yaml.safe_load(here("compare", reviews, *COLUMNS, *options)[1])
    assert "lexicon" in raw["arms"]["het-dropout"]["controls"]
    arm = "arms={p: {method: no-xstar}, v: {method: views, controls: [lexicon]}}"
    code, _, said = here("compare", reviews, *COLUMNS, *SHORT, "--set", arm, "--workers", "1")
    assert code == 2
    assert "lexicon needs task.lexicon" in said.replace("\n", " ")
    named = ("--set", "task.lexicon=words.txt")
    code, printed, _ = here(
        *("compare", reviews, *COLUMNS, *SHORT, "--set", arm, *named, "--workers", "1", "--json")
    )
    assert [arm["name"] for arm in json.loads(printed)["arms"]] == ["p", "v", "v/lexicon"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", *COLUMNS], "none.csv does not exist"),
        (["reviews.csv", "--text", "review"], "needs `target` and `rationale`"),
        (
            ["reviews.csv", *COLUMNS, "--privileged", "spans"],
            "it is for tables, not for texts",
        ),
        (["reviews.csv", *COLUMNS[2:]], "rationale: it is for texts"),
        (["reviews.csv", *COLUMNS[:-1], "span"], "did you mean `spans`"),
        (["reviews.csv", *COLUMNS[:-1], "review"], "no text has a tag among POS, NEG"),
        (["mine.yaml", "--rationale", "spans"], "for settings, where it is task.rationale"),
        (["reviews.csv", *COLUMNS, "--set", "task.metrik=auc"], "did you mean `metric`"),
        (["reviews.csv", *COLUMNS, "--set", "task.rationale_form=flags"], "row 1"),
    ],
)
def test_mistakes_end_in_a_message(
    reviews: str, here: Here, arguments: list[str], message: str
) -> None:
    code, stdout, stderr = here("compare", *arguments)
    assert code == 2
    assert message in stderr.replace("\n", " ")
    assert stdout == ""


def test_too_few_texts_are_refused(tmp_path: Path, here: Here) -> None:
    write_reviews(tmp_path / "few.csv", 30)
    code, _, said = here("compare", "few.csv", *COLUMNS)
    assert code == 2
    assert "15 rows are left for training" in said.replace("\n", " ")
