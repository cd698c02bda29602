"""What is said of data before the first run."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.preflight.data import Preflight, check_data
from lupi.records import read_comparison, write_comparison
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings
from made_images import image_folder
from made_runs import task_from
from made_table import HEADER, rows, settings_of, table_task, write_csv
from small_comparison import RAW


def texts(found: Preflight) -> dict[str, str]:
    return {fact.about: fact.text for fact in found.facts}


def test_a_table() -> None:
    found = check_data(table_task().for_run(60, 0), 60, 0)
    facts = texts(found)
    assert facts["rows"] == "60 training (largest size), 24 validation, 36 test"
    assert facts["replicates"] == (
        "each seed draws its own training, validation and test rows from 120; two seeds share 50% "
        "of their training rows. A verdict holds for data like these"
    )
    assert facts["x"] == "2 numbers (km, weight); 2 categories (van, packed); 1 date (sent)"
    assert facts["x*"] == "2 numbers (rain, traffic)"
    assert facts["y"].startswith("hours, a number, mean ")
    assert facts["rows with x*"] == "60 of 60 (100%)"
    assert facts["x* and y"].startswith("x* predicts y (R2 0.")
    assert found.warnings == ()


def test_classes_of_a_table_and_cells_that_are_no_numbers(tmp_path: Path) -> None:
    made = rows(200)
    made[7][HEADER.index("km")] = "far"
    path = write_csv(tmp_path / "a.csv", made)
    task = TableTask(settings_of(path, "late"), TableNetworkSettings()).for_run(60, 0)
    facts = texts(check_data(task, 60, 0))
    counts = [row[-1] for row in made]
    n_in_time, n_late = counts.count("in time"), counts.count("late")
    assert facts["y"] == f"late, one of 2 classes: in time {n_in_time}, late {n_late}"
    assert facts["cells"].startswith("column 'km': 1 of 200 cells are not numbers ('far')")


def test_xstar_that_relates_to_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [[*row[:5], f"{rng.normal():.3f}", f"{rng.normal():.3f}", *row[7:]] for row in rows()]
    path = write_csv(tmp_path / "a.csv", made)
    task = TableTask(settings_of(path), TableNetworkSettings()).for_run(60, 0)
    (warning,) = check_data(task, 60, 0).warnings
    assert warning.startswith("x* shows no relation to y, to the residual of a linear model of x")


def test_xstar_that_says_how_good_a_label_is(tmp_path: Path) -> None:
    """It predicts neither y nor the sign of what is left over, but how much that is."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(240):
        x, noise = rng.normal(), rng.choice([0.1, 3.0])
        made.append([f"{x:.4f}", f"{noise}", f"{x + noise * rng.normal():.4f}"])
    path = write_csv(tmp_path / "a.csv", made, ["x", "noise", "y"])
    settings = settings_of(path, "y", privileged=["noise"], ignore=[])
    found = check_data(TableTask(settings, TableNetworkSettings()).for_run(120, 0), 120, 0)
    assert found.warnings == ()


def test_time_and_groups_that_leave_few_test_rows(tmp_path: Path) -> None:
    made = [[*row, f"p{7 * i % 100}"] for i, row in enumerate(rows(200))]
    path = write_csv(tmp_path / "a.csv", made, [*HEADER, "person"])
    by_time, both = (
        TableTask(settings_of(path, time="sent", **groups), TableNetworkSettings()).for_run(60, 0)
        for groups in ({"ignore": ["late", "person"]}, {"groups": "person"})
    )
    assert not any("groups" in warning for warning in check_data(by_time, 60, 0).warnings)
    (few,) = (line for line in check_data(both, 60, 0).warnings if "groups" in line)
    n_test = len(both.splits(60, 0).test)
    assert few.startswith(f"time and groups together leave {n_test} test rows, since later rows")


def digits(**changes: Any) -> Preflight:
    return check_data(task_from({"name": "digits", **changes}, {}).for_run(100, 0), 100, 0)


def test_digits() -> None:
    found = digits()
    facts = texts(found)
    assert facts["x"] == "images of 24 x 24 pixels, 1 channel"
    assert facts["y"].startswith("one of 10 classes; images to choose from: 0 ")
    assert "covers 34% of x in the median row" in facts["region"]
    assert facts["x* and y"].startswith("the part of x inside the region predicts y better (R2 0.")
    assert found.warnings == ()


def pets(root: Path, mask: Any, **changes: Any) -> Preflight:
    """Look at images with masks; what they show has nothing to do with their class."""
    image_folder(root / "pets", n_images=20)
    for path in sorted((root / "pets").glob("[cd]*/*.png")):
        target = root / "pets/annotations/trimaps" / path.relative_to(root / "pets")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask).save(target)
    settings = {"root": str(root / "pets"), "masks": "annotations/trimaps", "image_size": 16}
    held_out = {"n_val": 2, "n_test": 2, "cache": str(root / "cache")}
    task = {"name": "image-folder", **settings, **held_out, **changes}
    return check_data(task_from(task, {}).for_run(20, 0), 20, 0)


def test_trimaps_cover_everything_until_their_values_are_named(tmp_path: Path) -> None:
    trimap = np.full((64, 64), 2, dtype=np.uint8)
    trimap[16:48, 16:48] = 1
    found = pets(tmp_path, trimap)
    assert any("x* covers everything" in warning for warning in found.warnings)
    assert "task.mask_values" in found.warnings[0]
    assert texts(found)["y"] == "one of 2 classes; images to choose from: cats 16, dogs 16"
    named = pets(tmp_path, trimap, mask_values=[1])
    assert texts(named)["region"].startswith("covers 25% of x in the median row")
    assert not any("x* covers everything" in warning for warning in named.warnings)


def test_facts_are_recorded(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    write_comparison(tmp_path, {}, plan.arms, plan.metric, [], facts=plan.facts)
    assert tuple(read_comparison(tmp_path).facts) == plan.facts
    assert plan.facts[0].about == "x"


def test_words_follow_the_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [[*row[:5], f"{rng.normal():.3f}", f"{rng.normal():.3f}", *row[7:]] for row in rows()]
    task = TableTask(settings_of(write_csv(tmp_path / "a.csv", made)), TableNetworkSettings())
    assert texts(check_data(task.for_run(60, 0), 60, 0))["x* and y"].startswith(
        "x* does not predict y (R2 "
    )
