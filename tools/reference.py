"""Write the reference pages from the code: every setting, and every public name.

    python tools/reference.py           rewrite the pages
    python tools/reference.py --check   name the pages that would change, and exit with 1

A table of settings stands between `<!-- settings task table -->` and `<!-- end -->`; the words are
those of the docstrings, which `lupi methods NAME` prints, too. docs/api.md is written as a whole.
"""

import argparse
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic.fields import FieldInfo

import lupi
from lupi.comparison.settings import ArmSettings, ComparisonSettings, PaperSettings
from lupi.comparison.tuning import TuningSettings
from lupi.methods.facts import list_facts
from lupi.settings import Settings
from lupi.tasks.images.image_files import AugmentSettings
from lupi.tasks.registry import find_task
from lupi.train.learners import find_learner
from lupi.train.settings import TrainSettings
from lupi_paper.theory.curves import BoundSettings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- (settings|methods)([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
SINGLE: dict[str, type[Settings]] = {
    "arm": ArmSettings,
    "augment": AugmentSettings,
    "bounds": BoundSettings,
    "comparison": ComparisonSettings,
    "paper": PaperSettings,
    "train": TrainSettings,
    "tuning": TuningSettings,
}
FILLED_IN = ("name", "content")
"""Keys that lupi fills in, or that say which table it is."""


def models(kind: str, names: list[str]) -> dict[str, type[Settings]]:
    """Return the settings that a table lists, by the name of their task or method."""
    if kind in SINGLE:
        return {kind: SINGLE[kind]}
    if kind == "method":
        return {name: find_learner(name).Settings for name in names}
    found = {name: find_task(name) for name in names}
    return {
        name: task.Network if kind == "network" else task.Settings for name, task in found.items()
    }


def settings_table(kind: str, *names: str) -> str:
    """Return a table of keys, defaults and meanings; of several models, one for all of them."""
    listed = models(kind, list(names))
    keys = dict.fromkeys(key for model in listed.values() for key in model.fields())
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key in keys:
        if key in FILLED_IN and kind != "network":
            continue
        fields = {n: m.fields()[key] for n, m in listed.items() if key in m.fields()}
        defaults = {name: default_text(field) for name, field in fields.items()}
        text = next(iter(defaults.values()))
        if len(set(defaults.values())) > 1:
            text = "; ".join(f"{name}: {value}" for name, value in defaults.items())
        meaning = _cell(next((f.description for f in fields.values() if f.description), "") or "")
        if len(fields) < len(listed):
            meaning = f"({', '.join(fields)}) {meaning}"
        for model in listed.values():
            those = [v for v, m in model.own_variants().items() if key in m.model_fields]
            if 0 < len(those) < len(model.own_variants()):
                meaning = f"(`{model.varies_by}: {those[0]}`) {meaning}"
        lines.append(f"| `{key}` | {text.replace('|', chr(92) + '|')} | {meaning} |")
    return "\n".join(lines) + "\n"


def default_text(field: FieldInfo) -> str:
    """Return a default as it would be written in YAML."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Settings) or value in ({}, [], ()):
        return ""
    if value is None:
        return "none"
    plain = str(value) if isinstance(value, Path) else _plain(value)
    written: str = yaml.safe_dump(plain, default_flow_style=True, width=10_000)
    return _stars(written.removesuffix("\n").removesuffix("\n..."))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value.model_dump() if isinstance(value, Settings) else value


def methods_table() -> str:
    """Return a table of all methods and classical models, from their classes."""
    lines = ["| method | uses x\\* | kinds of x\\* | what it does |", "|---|---|---|---|"]
    for facts in list_facts():
        uses = "at test, too" if facts.sees_xstar_at_test else "yes" if facts.uses_xstar else "no"
        page = DOCS / f"methods/{facts.name}.md"
        if facts.name.endswith("-official"):
            page = DOCS / "methods/official.md"
        name = f"[`{facts.name}`]({page.name})" if page.exists() else f"`{facts.name}`"
        kinds = ", ".join(facts.kinds) if facts.uses_xstar else ""
        lines.append(f"| {name} | {uses} | {kinds} | {_cell(facts.summary)} |")
    return "\n".join(lines) + "\n"


def interface_page() -> str:
    """Return the page of all public names: signature, and the first sentence of the docstring."""
    parts = [
        "# The Python interface\n",
        "The public names of `lupi`, written from the code by `python tools/reference.py`.",
        "Everything else may change. Names are imported when they are first used.",
        "[Parameters](reference.md) has their docstrings as a whole.\n",
    ]
    for name in lupi.__all__:
        thing = getattr(lupi, name)
        if isinstance(thing, ModuleType):
            continue
        if not callable(thing):
            parts.append(f"- `lupi.{name}` is {type(thing).__name__} {thing!r}.")
            continue
        first = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
        parts.append(f"- `lupi.{name}{_signature(thing)}`\n  {_stars(' '.join(first.split()))}")
    parts.append("\nTo add a method, write [one file](../CONTRIBUTING.md).\n")
    return "\n".join(parts)


def _signature(thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    parameters = inspect.signature(thing).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return str(inspect.Signature(bare))


def _cell(text: str) -> str:
    """Return text as it stands in a cell of a table."""
    return _stars(" ".join(text.split())).replace("|", "\\|")


def _stars(text: str) -> str:
    """Escape the stars of x* and h* outside of code."""
    parts = text.split("`")
    return "`".join(
        part if i % 2 else re.sub(r"([xh])\*", r"\1\\*", part) for i, part in enumerate(parts)
    )


def rewritten(page: Path) -> str:
    """Return a page with its tables written again."""
    if page == DOCS / "api.md":
        return interface_page()

    def table(found: re.Match[str]) -> str:
        words = found[3].split()
        text = settings_table(*words) if found[2] == "settings" else methods_table()
        return f"{found[1]}{text}{found[4]}"

    return BLOCK.sub(table, page.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """Return the pages with tables from the code."""
    found = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text("utf-8"))]
    return [DOCS / "api.md", *found]


def main() -> None:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    changed = [page for page in pages() if rewritten(page) != page.read_text(encoding="utf-8")]
    for page in changed:
        print(f"{'differs' if check else 'rewritten'}: {page.relative_to(ROOT)}")
        if not check:
            page.write_text(rewritten(page), encoding="utf-8")
    sys.exit(1 if check and changed else 0)


if __name__ == "__main__":
    main()
