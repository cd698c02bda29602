"""One run does once what it has to do once."""

import sys
from pathlib import Path

from the_command import inside
from walk import COUNTED, Walk


def test_a_run_parses_its_settings_and_builds_a_task_and_a_network_once(tmp_path: Path) -> None:
    walk = Walk()
    sys.setprofile(walk)
    try:
        code, _, err = inside(
            *("train", "demo", "--arm", "het-dropout", "--size", "75", "--out", str(tmp_path)),
            *("--set", "train.epochs=1", "--set", "train.steps_per_epoch=2"),
        )
    finally:
        sys.setprofile(None)
    assert code == 0, err
    functions = walk.functions()
    counts = {what: functions[where] for what, where in COUNTED.items()}
    assert counts["tasks built"] == counts["networks built"] == counts["settings hashed"] == 1
    # Of the comparison, the run, its four parts, and the variant of the noise.
    assert counts["settings parsed"] <= 7
    assert counts["settings resolved"] <= 2  # for the identity of the run, and for its record
