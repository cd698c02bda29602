"""Settings files that come with the package."""

from pathlib import Path

import pytest

from lupi.comparison.settings import ComparisonSettings
from lupi.configs import find_settings, settings_names
from lupi.errors import LupiError
from lupi.settings import merge, read_yaml
from lupi.tasks.registry import parse_network
from lupi.train.learners import find_learner
from lupi.train.settings import TrainSettings


@pytest.mark.parametrize("name", settings_names())
def test_every_setting_of_every_file_exists(name: str) -> None:
    settings = ComparisonSettings.parse(read_yaml(find_settings(Path(name))), "")
    for arm in settings.arms.values():
        parse_network(settings.task, merge(settings.network, arm.network))
        find_learner(arm.method).Settings.parse(arm.settings, "settings")
        for changes in ({}, *settings.train_by_size.values()):
            TrainSettings.parse(merge(merge(settings.train, changes), arm.train), "train")


def test_a_file_of_the_users_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_settings(Path("demo")).name == "demo.yaml"
    Path("demo").mkdir()
    assert find_settings(Path("demo")).name == "demo.yaml"
    Path("demo").rmdir()
    Path("demo").write_text("name: mine")
    assert find_settings(Path("demo")) == Path("demo")


@pytest.mark.parametrize("given", ["dem.yaml", "../demo", "/nowhere/demo.yaml"])
def test_unknown_names_are_answered_with_the_nearest(given: str) -> None:
    with pytest.raises(LupiError, match=r"no settings file is called .*demo"):
        find_settings(Path(given))
