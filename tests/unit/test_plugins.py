"""Plug-ins register tasks, methods, commands and settings; what is not installed is named."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

from conftest import Here
from lupi import plugins
from lupi.cli.app import add_plugin_verbs
from lupi.configs import find_settings, settings_names
from lupi.errors import LupiError
from lupi.methods.no_xstar import NoXstar
from lupi.methods.registry import find_method, methods
from lupi.tasks.images.digits import DigitsTask
from lupi.tasks.registry import find_task, parse_task


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points of all installed packages: none, until a test adds some."""
    entries: list[EntryPoint] = []

    def of_group(group: str) -> list[EntryPoint]:
        return [entry for entry in entries if entry.group == group]

    monkeypatch.setattr(plugins, "entry_points", of_group)
    plugins.plugins.cache_clear()
    methods.cache_clear()
    yield entries
    plugins.plugins.cache_clear()
    methods.cache_clear()


def test_lupi_paper_is_a_plugin_like_any_other() -> None:
    assert find_task("translation").load.__module__.startswith("lupi_paper.")
    assert find_method("imagination").__module__.startswith("lupi_paper.")
    assert {"paper/sizes", "tiny/small-boxes", "multi30k/en-de"} <= set(settings_names())
    for group, names in plugins.IN_LUPI_PAPER.items():
        if group != "lupi.configs":
            assert set(names) <= set(plugins.plugins(group))


def test_a_package_adds_a_task_a_method_and_settings(
    installed: list[EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_settings").mkdir()
    (tmp_path / "their_settings/theirs.yaml").write_text("name: theirs\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed += [
        EntryPoint("their-digits", "lupi.tasks.images.digits:DigitsTask", "lupi.tasks"),
        EntryPoint("their-method", "lupi.methods.no_xstar:NoXstar", "lupi.methods"),
        EntryPoint("theirs", "their_settings", "lupi.configs"),
    ]
    assert find_task("their-digits") is DigitsTask
    assert find_method("their-method") is NoXstar
    assert find_settings(Path("theirs")) == tmp_path / "their_settings/theirs.yaml"


@pytest.mark.usefixtures("installed")
def test_without_lupi_paper_its_names_say_where_they_come_from() -> None:
    missing = "comes with lupi_paper, which is not installed: pip install lupi-paper"
    with pytest.raises(LupiError, match=f"task.name: translation {missing}"):
        parse_task({"name": "translation"})
    with pytest.raises(LupiError, match=f"imagination {missing}"):
        find_method("imagination")
    with pytest.raises(LupiError, match=rf"paper/sizes: no such file; paper {missing}"):
        find_settings(Path("paper/sizes"))
    app = typer.Typer()
    add_plugin_verbs(app)
    for verb, command in zip(("translate", "bounds"), app.registered_commands, strict=True):
        assert command.name == verb
        assert command.callback is not None
        with pytest.raises(LupiError, match=f"lupi {verb} {missing}"):
            command.callback()


def test_a_broken_plugin_is_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("other", "no_such_package:Task", "lupi.tasks"))
    with pytest.raises(LupiError, match=r"other comes with no_such_package:Task, which can't be"):
        find_task("other")


def test_a_broken_command_does_not_stop_others(installed: list[EntryPoint], here: Here) -> None:
    installed.append(EntryPoint("wave", "no_such_package:wave", "lupi.commands"))
    app = typer.Typer()
    add_plugin_verbs(app)
    assert "wave" in [command.name for command in app.registered_commands]
    assert here("methods")[0] == 0
