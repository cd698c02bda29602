import json
from typing import Any

import numpy as np
import pytest

from lupi.analysis.findings import find, groups_of
from lupi.analysis.observed import Observed, SiteNoise, Unit
from lupi.report.sheets.analysis import draw_profile, heat_map, lead, relation_rows, sections
from lupi.report.sheets.sheet import render_sheet

N = 60


def site(variances: Any, unit: Unit = "unit", **changes: Any) -> SiteNoise:
    between = float(np.log(variances).std(axis=0).mean())
    return SiteNoise("head.drop1", variances, unit, between, between < 0.01, **changes)


def observed(*sites: SiteNoise, **changes: Any) -> Observed:
    facts: dict[str, Any] = {
        "method": "het-dropout",
        "control": "real",
        "n_held": 2 * N,
        "losses": np.linspace(0, 3, N),
        "correct": np.arange(N) < 40,
        "region_frac": np.linspace(0.6, 0.1, N),
    }
    return Observed(sites=sites, **{**facts, **changes})


def more_noise_for_right(n_units: int = 5) -> np.ndarray:
    """Variance falls along the rows, and rises with the unit's number."""
    return np.linspace(1.0, 0.5, N)[:, None] * np.arange(1.0, n_units + 1)


def test_units_are_sorted_by_energy_in_both_groups() -> None:
    (found,) = find(observed(site(more_noise_for_right()))).sites
    assert found.order == (4, 3, 2, 1, 0)
    right, wrong = found.profiles
    assert (right.group, right.n_rows, wrong.group, wrong.n_rows) == ("correct", 40, "wrong", 20)
    rows = more_noise_for_right()[:40, 4]
    assert right.means[0] == pytest.approx(rows.mean())
    assert right.high[0] - right.means[0] == pytest.approx(
        1.96 * rows.std(ddof=1) / 40**0.5, rel=1e-3
    )
    assert right.means[0] > wrong.means[0]


def test_difference_and_relations() -> None:
    (found,) = find(observed(site(more_noise_for_right()))).sites
    assert found.difference is not None
    assert found.difference.is_clear
    assert any("Correct rows have more noise" in text for text in found.diagnosis)
    relations = {(r.noise, r.to): r.correlation for r in found.relations}
    loss, size = relations["mean variance", "loss"], relations["mean variance", "region size"]
    assert loss is not None
    assert size is not None
    assert (loss.value, size.value) == pytest.approx((-1, 1))
    assert relations["spread over units", "loss"] is None  # the same in every row


def test_the_opposite_of_the_paper_is_said() -> None:
    (found,) = find(observed(site(more_noise_for_right()[::-1]))).sites
    assert any("the paper found the opposite" in text for text in found.diagnosis)


def test_collapse_in_words() -> None:
    findings = find(observed(site(np.ones((N, 4)))))
    assert findings.collapsed
    (found,) = findings.sites
    assert found.diagnosis[0].startswith("Collapsed")
    plain = "All units have the same variance: plain Gaussian noise of variance 1."
    assert found.diagnosis[1] == plain
    assert lead(findings)[0] == "Collapsed: the noise no longer depends on x* at any site."
    assert relation_rows(found) == []
    uneven = np.tile(np.arange(1.0, 5.0), (N, 1))
    (found,) = find(observed(site(uneven))).sites
    assert len(found.diagnosis) == 1  # collapsed, but not one variance for all


def test_too_little_and_too_much_noise_are_said() -> None:
    for scale, word in ((1e-5, "hardly any noise"), (80.0, "at its upper limit")):
        (found,) = find(observed(site(scale * more_noise_for_right(1)))).sites
        assert any(word in text for text in found.diagnosis)


def test_a_control_is_called_one() -> None:
    (found,) = find(observed(site(more_noise_for_right()), control="shuffled")).sites
    assert any("a control with shuffled x*" in text for text in found.diagnosis)


def test_inside_and_outside() -> None:
    inside, outside = np.full(N, 0.1), np.full(N, 1.0)
    inside[0] = np.nan  # a row whose region is empty
    found = find(observed(site(more_noise_for_right(), "place", inside=inside, outside=outside)))
    assert (found.sites[0].inside, found.sites[0].outside) == pytest.approx((0.1, 1.0))
    assert any(
        "The mean variance is 0.1 inside the region" in text for text in found.sites[0].diagnosis
    )


def test_without_classes_rows_are_cut_at_the_median_loss() -> None:
    seen = observed(site(more_noise_for_right()), correct=None, region_frac=None)
    assert {name: rows.sum() for name, rows in groups_of(seen).items()} == {
        "low loss": 30,
        "high loss": 30,
    }
    assert {r.to for r in find(seen).sites[0].relations} == {"loss"}


def test_everything_right_leaves_one_group() -> None:
    seen = observed(site(more_noise_for_right()), correct=np.ones(N, dtype=np.bool_))
    findings = find(seen)
    assert [profile.group for profile in findings.sites[0].profiles] == ["correct"]
    assert "correct (60 rows)" in draw_profile(findings.sites[0])
    assert render_sheet("a", lead(findings), list(sections(findings, seen)))


def test_json_and_page() -> None:
    seen = observed(site(more_noise_for_right()))
    findings = find(seen)
    document = json.loads(json.dumps(findings.to_json(), allow_nan=False))
    assert document["sites"][0]["order"] == [4, 3, 2, 1, 0]
    page = render_sheet("What <b>", lead(findings), list(sections(findings, seen)))
    assert "What &lt;b&gt;" in page
    assert "<script" not in page
    for namespace in ("2000/svg", "1999/xlink"):  # names of formats, which no browser fetches
        page = page.replace(f"http://www.w3.org/{namespace}", "")
    assert "http://" not in page
    assert page.count("<svg") == 1


def test_heat_map_shows_the_groups_apart() -> None:
    noise = site(more_noise_for_right(900))
    pixels, low, high = heat_map(noise, list(range(900)), groups_of(observed(noise)))
    assert pixels.shape == (40 + 4 + 20, 600, 3)
    assert (pixels[40:44] == 128).all()
    assert float(low) < float(high)
    assert pixels[0, -1].sum() > pixels[0, 0].sum()  # viridis: bright is much
