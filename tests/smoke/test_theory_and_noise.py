"""`lupi bounds` and `lupi analyse`, as a user runs them."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Here
from small_comparison import SMALL


def test_bounds(tmp_path: Path, here: Here) -> None:
    text = here("bounds")[1]
    assert "Proposition 2 is below Proposition 1 from n = 17 on." in text
    assert max(map(len, text.splitlines())) <= 80
    assert (tmp_path / "runs/bounds.svg").exists()
    document = json.loads(here("bounds", "--json", "--network", "small-vgg", "--out", "b.svg")[1])
    assert document["measured"]["log10_paths"] == pytest.approx(15.549, abs=0.01)
    assert document["constants"]["n_outputs"] == 10
    assert (tmp_path / "b.svg").read_text().startswith("<svg")


def test_bounds_simulate(tmp_path: Path, here: Here) -> None:
    document = json.loads(here("bounds", "--simulate", "--json", "--out", "b.svg")[1])
    slopes = {way["name"]: way["slope"] for way in document["simulation"]}
    assert slopes["without"] == pytest.approx(-0.5, abs=0.03)
    assert slopes["oracle"] == pytest.approx(-1, abs=0.05)
    assert (tmp_path / "b-oracle.svg").exists()


def test_analyse_and_bounds_of_a_run(tmp_path: Path, here: Here) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL))
    here("train", "small.yaml", "--arm", "het-dropout", "--out", "noise")[1]
    text = here("analyse", "noise")[1]
    assert "Their x* was revealed only" in text
    assert max(map(len, text.splitlines())) <= 80
    (page,) = tmp_path.glob("noise/*/analysis/analysis.html")
    assert {path.name for path in page.parent.iterdir()} == {
        "analysis.html",
        "analysis.json",
        "trunk.site2-rows.png",
        "trunk.site2-units.svg",
    }
    printed = json.loads(here("analyse", "noise", "--json", "--rows", "50", "--out", "a")[1])
    assert printed == json.loads((tmp_path / "a/analysis.json").read_text())
    assert printed["n_rows"] == 50
    text = " ".join(here("bounds", "--run", "noise")[1].split())
    assert "measured xi = " in text
    assert "Proposition 2 does not apply to this network." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bounds", "--set", "xi=1"], "Proposition 2 is stated for xi <= delta only"),
        (["bounds", "--set", "deltas=1"], "did you mean `delta`"),
        (["bounds", "--out", "a.png"], "a name that ends in .svg"),
        (["bounds", "--network", "small-vgg", "--run", "."], "not both"),
        (["analyse", "."], "holds no finished run"),
    ],
)
def test_mistakes(here: Here, arguments: list[str], message: str) -> None:
    code, _, said = here(*arguments)
    assert code == 2
    assert message in said.replace("\n", " ")
