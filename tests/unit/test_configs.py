"""Settings files that come with the package."""

from pathlib import Path

import pytest

from lupi.comparison.settings import ComparisonSettings, run_settings
from lupi.configs import find_settings, settings_names
from lupi.errors import LupiError
from lupi.settings import read_yaml


@pytest.mark.parametrize("name", settings_names())
def test_every_setting_of_every_file_exists(name: str) -> None:
    settings = ComparisonSettings.parse(read_yaml(find_settings(Path(name))), "")
    for arm in settings.named_arms():  # controls, too, which may have settings of their own
        for size in settings.sizes_of(arm.settings):
            run_settings(settings, settings.task, arm, size, settings.seeds[0])


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
