"""Who trains: this process alone, or those that torchrun started."""

import sys

import pytest

from lupi.errors import LupiError
from lupi.train.processes import Processes, start_processes
from lupi.train.settings import TrainSettings


def test_without_torchrun_there_is_one_process() -> None:
    assert type(start_processes(TrainSettings())) is Processes


def test_several_processes_name_the_extra_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    monkeypatch.delitem(sys.modules, "lupi.train.fabric", raising=False)
    with pytest.raises(LupiError, match=r"2 processes.*pip install 'lupi\[distributed\]'"):
        start_processes(TrainSettings())
