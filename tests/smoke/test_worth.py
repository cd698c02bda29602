"""`lupi worth` and `--xstar-fracs`, on records and through the real command."""

import json
from pathlib import Path

import pytest
import yaml

import lupi as package
from lupi.errors import LupiError
from lupi.interface.named_arms import with_fractions
from lupi.records import Arm
from made_records import make_records
from the_command import lupi

FRACTIONS = (0.1, 0.25, 0.5, 1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arms = (
        Arm("no-xstar", "no-xstar"),
        *(
            Arm(
                f"het-dropout@{100 * f:g}%",
                "het-dropout",
                uses_xstar=True,
                xstar_frac=f,
                family="het-dropout",
            )
            for f in FRACTIONS
        ),
    )
    return make_records(tmp_path_factory.mktemp("worth"), arms=arms, images=False)


def test_it_prints_the_worth_and_the_mix(folder: Path, tmp_path: Path) -> None:
    told = lupi("worth", str(folder), "--budget", "200", "--xstar-cost", "0.5", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    surface = package.Comparison(folder).worth()
    mix = surface.best_mix(200, 1, 0.5)
    assert surface.helps
    assert f"{surface.worth(surface.largest_n).value:.1f} labels" in told.stdout
    assert f"buy {mix.n:,} labels" in told.stdout
    document = json.loads(
        lupi("worth", str(folder), "--budget", "200", "--json", cwd=tmp_path).stdout
    )
    assert document["mix"]["n"] == surface.best_mix(200).n


def test_costs_without_a_budget_are_refused(folder: Path, tmp_path: Path) -> None:
    told = lupi("worth", str(folder), "--label-cost", "2", cwd=tmp_path)
    assert told.returncode == 2
    assert "--budget" in told.stderr


def test_the_page_tells_what_xstar_is_worth(folder: Path) -> None:
    comparison = package.Comparison(folder)
    page = comparison.report(folder / "page.html").read_text()
    assert 'id="worth"' in page
    assert "worth-figure" in page


def test_a_comparison_without_fractions_says_what_to_run(tmp_path: Path) -> None:
    told = lupi("worth", str(make_records(tmp_path / "plain", images=False)), cwd=tmp_path)
    assert told.returncode == 2
    assert "--xstar-fracs" in told.stderr


def test_fractions_are_given_to_the_arms_that_use_xstar(tmp_path: Path) -> None:
    told = lupi("compare", "demo", "--xstar-fracs", "0,0.25,1", "--print-settings", cwd=tmp_path)
    arms = yaml.safe_load(told.stdout)["arms"]
    assert arms["het-dropout"]["xstar_fracs"] == [0.25, 1.0]
    assert "xstar_fracs" not in arms["no-xstar"]


@pytest.mark.parametrize("fractions", [[], [0.0], [0.5, 1.5]])
def test_fractions_that_are_none_are_refused(fractions: list[float]) -> None:
    with pytest.raises(LupiError, match="fractions"):
        with_fractions({"a": {"method": "het-dropout"}}, fractions)


def test_fractions_without_an_arm_that_uses_xstar_are_refused() -> None:
    with pytest.raises(LupiError, match="no arm"):
        with_fractions({"plain": {"method": "no-xstar"}}, [0.5])
