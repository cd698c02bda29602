import pytest
from summaries import arm, cell, summary

from lupi.report.figures.curves import fraction_curves, fraction_places
from lupi.report.sentences import additional_labels, families, partial_sentences
from lupi.verdict.results import LabelSaving, Summary, Verdict


def judged(*verdicts: Verdict) -> Summary:
    fractions = (1.0, 0.0, 0.04)
    return summary(
        *(
            arm(
                f"het@{100 * frac:g}%",
                cell(100, 0.5 + frac / 10, verdict),
                uses_xstar=frac > 0,
                xstar_frac=frac,
                family="het",
            )
            for frac, verdict in zip(fractions, verdicts, strict=True)
        )
    )


def test_families_by_rising_fraction() -> None:
    found = families(judged("helps", "underpowered", "helps"))
    assert [arm.xstar_frac for arm in found["het"]] == [0.0, 0.04, 1.0]


def test_sentences_name_the_smallest_fraction_that_helps() -> None:
    (sentence,) = partial_sentences(judged("helps", "no detectable difference", "helps"))
    assert sentence.startswith("het, n = 100: x* helps when 4 %, 100 % of the rows have it; 4 %:")
    assert "100 %: -1.0 points against gaussian-dropout, 95 % interval -2.0 to +1.0." in sentence
    (sentence,) = partial_sentences(judged("hurts", "underpowered", "underpowered"))
    assert "x* helps at no measured fraction; 100 %: -1.0" in sentence


def test_zero_has_a_place_left_of_the_smallest_fraction() -> None:
    place = fraction_places([1.0, 0.1, 0.0, 0.01])
    assert list(place) == [0.0, 0.01, 0.1, 1.0]
    assert place[0.1] - place[0.01] == pytest.approx(place[1.0] - place[0.1])
    assert place[0.0] < place[0.01]


def test_figure_of_fractions() -> None:
    figure = fraction_curves(judged("helps", "underpowered", "helps"), 100)
    (trace,) = figure.data
    assert trace.name == "het"
    assert trace.y == pytest.approx((50.0, 50.4, 60.0))
    assert list(figure.layout.xaxis.ticktext) == ["0 %", "4 %", "100 %"]
    assert figure.layout.shapes[0].y0 == pytest.approx(55)  # the plain arm


def test_labels_in_numbers_and_factors() -> None:
    savings = [
        LabelSaving("no-xstar", "measured", 1.5, (1.2, None)),
        LabelSaving("no-xstar", "measured", 0.9, None),
        LabelSaving("no-xstar", "beyond range", None, (1.0, None)),
        LabelSaving("no-xstar", "unknown", None, None),
    ]
    sizes = (100, 200, 400, 800)
    cells = [cell(n, label_saving=saved) for n, saved in zip(sizes, savings, strict=True)]
    found = additional_labels(summary(arm("het", *cells), sizes=sizes))
    assert found == {
        "het": [
            "no-xstar 50 more at n = 100 (1.5×, 1.2 or more)",
            "no-xstar 20 fewer at n = 200 (0.9×)",
            "no-xstar beyond range at n = 400",
        ]
    }
    assert additional_labels(summary(arm("het", cells[0]))) == {}  # one size makes no curve
