"""What the documentation tells people to type: it runs."""

import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sklearn

from conftest import Here
from made_images import image_folder
from made_table import rows, write_csv

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHER_PAGES = [page for page in sorted(ROOT.glob("*.md")) if page not in PAGES]
SHORT = ["train.epochs=1", "train.steps_per_epoch=2", "seeds=2", "sizes=[20]"]


def blocks(language: str) -> list[tuple[str, str]]:
    """Return the blocks of a language; those of a tutorial are one, as in a notebook."""
    every = [*_single_blocks(language)]
    tutorials = dict.fromkeys(page for page, _ in every if "/tutorials/" in page)
    joined = [(t, "\n".join(block for page, block in every if page == t)) for t in tutorials]
    return [block for block in every if block[0] not in tutorials] + joined


def _single_blocks(language: str) -> list[tuple[str, str]]:
    return [
        (str(page.relative_to(ROOT)), block)
        for page in PAGES
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)
    ]


def name(block: tuple[str, str]) -> str:
    return f"{block[0]}: {block[1].splitlines()[0]}"


AFTER_COMMANDS = [block for block in blocks("python") if "load_student(" in block[1]]


@pytest.mark.parametrize(
    "block", [block for block in blocks("python") if block not in AFTER_COMMANDS], ids=name
)
def test_python(block: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    execute(block[1])


def execute(block: str) -> None:
    with sklearn.config_context():  # which a block may change
        exec(block, {"__name__": "__main__"})


COMMANDS = [line for _, block in blocks("console") for line in block.splitlines()]
LUPI = list(
    dict.fromkeys(line.split("  #")[0].strip() for line in COMMANDS if line.startswith("lupi "))
)


@pytest.mark.usefixtures("few_simulations")
def test_lupi_commands(tmp_path: Path, here: Here) -> None:
    """In the order of the pages, as a reader would; training is cut short, nothing else."""
    assert LUPI
    write_csv(tmp_path / "deliveries.csv", rows())  # the reader's own table
    make_rounds = runpy.run_path(str(ROOT / "examples/tables/make_rounds.py"))["make_rounds"]
    make_rounds().to_csv(tmp_path / "rounds.csv", index=False)
    image_folder(tmp_path / "pets", n_images=40)  # … and images
    for _, block in blocks("yaml"):
        if named := re.match(r"# (\S+\.yaml)\n", block):
            (tmp_path / named[1]).write_text(block)
    for command in LUPI:
        arguments = shlex.split(command)[1:]
        arguments, redirect, target = (
            (arguments[: arguments.index(">")], True, arguments[-1])
            if ">" in arguments
            else (arguments, False, "")
        )
        if (
            arguments[0] in ("demo", "plan", "compare", "train")
            and "--print-settings" not in arguments
        ):
            arguments += [word for change in SHORT for word in ("--set", change)]
        code, stdout, stderr = here(*arguments)
        assert code == 0, f"{command}\n{stderr}"
        if redirect:
            (tmp_path / target).write_text(stdout)
    assert AFTER_COMMANDS
    for _, block in AFTER_COMMANDS:  # they read what the commands wrote
        execute(block)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert {"demo", "test"} <= targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


@pytest.mark.parametrize(
    "page", [*PAGES, *OTHER_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_every_parameter_is_documented() -> None:
    from inspect import signature

    import lupi

    pages: dict[str, list[Callable[..., Any]]] = {
        "docs/own-network.md": [lupi.attach],
        "docs/estimators.md": [lupi.LupiClassifier, lupi.SVMPlus],
        "docs/judge.md": [lupi.judge],
        "docs/compare.md": [lupi.compare, lupi.dataset_task],
    }
    for page, takers in pages.items():
        text = (ROOT / page).read_text()
        for taker in takers:
            for key in set(signature(taker).parameters) - {"net"}:
                assert f"`{key}`" in text, f"{page}: {key}"


def test_the_reference_has_every_public_name() -> None:
    import lupi

    page = (ROOT / "docs/reference.md").read_text()
    listed = re.findall(r"^::: lupi\.(\w+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(set(lupi.__all__) - {"__version__"})


def test_every_page_of_a_method_can_be_found() -> None:
    index, site = ((ROOT / name).read_text() for name in ("docs/methods/index.md", "mkdocs.yml"))
    for page in (ROOT / "docs/methods").glob("*.md"):
        assert f"methods/{page.name}" in site, page
        assert page.name == "index.md" or f"]({page.name})" in index, page
