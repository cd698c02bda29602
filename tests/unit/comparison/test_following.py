from pathlib import Path

import pytest

from lupi.comparison.engines.following import run_on_node
from lupi.comparison.jobs import Job
from lupi.errors import LupiError

JOB = Job("run", {}, Path("runs/small/run"))


@pytest.mark.parametrize("here", ["missing", "."])
def test_a_machine_that_does_not_share_the_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LupiError, match=r"does not see .*runs/small: start lupi, and keep records"):
        run_on_node(JOB, tmp_path / here)
    assert not list(tmp_path.iterdir())
