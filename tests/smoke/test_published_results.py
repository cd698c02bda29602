"""What README.md and docs/results publish is what the code computes from the published scores."""

from pathlib import Path

import pytest

import results

PAGES = results.pages()


def page_name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_tables_and_sentences_are_as_computed(page: Path) -> None:
    """`python tools/results.py` rewrites them."""
    assert page.read_text(encoding="utf-8") == results.rewritten(page)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_sentences_rest_on_verdicts_of_the_present_rule(page: Path) -> None:
    assert results.wrong_verdicts(page) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_number_is_computed_or_named_as_measured_elsewhere(page: Path) -> None:
    assert results.unexplained_numbers(page) == []


def test_every_comparison_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for path in results.RESULTS.glob("*.csv"):
        assert f"]({path.name})" in text, path.name
    assert {path.stem for path in results.RESULTS.glob("*.csv")} >= set(results.facts())


def test_a_changed_score_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dict(row) for row in results.rows("pets")]
    rows[0]["score"] = "0.9"
    of = results.rows
    monkeypatch.setattr(results, "rows", lambda name: rows if name == "pets" else of(name))
    results.summary.cache_clear()
    try:
        page = results.RESULTS / "no-gain.md"
        assert results.rewritten(page) != page.read_text(encoding="utf-8")
    finally:
        results.summary.cache_clear()
