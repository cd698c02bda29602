"""The reference pages say what the code says: `python tools/reference.py` writes them."""

import re
from pathlib import Path

import pytest

import reference
from lupi.tasks.registry import task_names
from lupi.train.learners import learners

PAGES = reference.pages()
TABLES = [
    tuple(spec.split())
    for page in PAGES
    for spec in re.findall(r"<!-- settings (.*?) -->", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_as_written_from_the_code(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == reference.rewritten(page)


@pytest.mark.parametrize("table", TABLES, ids=" ".join)
def test_every_setting_has_a_meaning(table: tuple[str, ...]) -> None:
    for line in reference.settings_table(*table).splitlines()[2:]:
        key, _, meaning = re.split(r"(?<!\\\\)\|", line)[1:4]
        assert re.sub(r"\(.*?\)", "", meaning).strip(), key


def test_every_task_method_and_model_has_a_table() -> None:
    listed = {(kind, name) for kind, *names in TABLES for name in names}
    single = {kind for kind, *names in TABLES if not names}
    assert single == set(reference.SINGLE)
    for name in set(task_names()) - {"custom"}:  # the user's own
        assert ("task", name) in listed, name
    with_settings = {name for name, cls in learners().items() if cls.Settings.model_fields}
    assert {name for kind, name in listed if kind == "method"} == with_settings
