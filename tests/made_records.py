"""A comparison as runs would leave it on disk, made up and always the same."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from lupi.records import Arm, Design, Metric, PlannedRun, run_identity, write_comparison

ARMS = (
    Arm("no-xstar", "no-xstar"),
    Arm("gaussian-dropout", "gaussian-dropout"),
    Arm("het-dropout", "het-dropout", uses_xstar=True),
    Arm("het-dropout/shuffled", "het-dropout", "shuffled", uses_xstar=True),
    Arm("het-dropout/constant", "het-dropout", "constant", uses_xstar=True),
    Arm("oracle", "oracle", uses_xstar=True, sees_xstar_at_test=True),
)
GAINS = {"gaussian-dropout": 0.02, "het-dropout": 0.09, "oracle": 0.2}
"""How much better than the plain arm an arm is; none where not listed."""
SITE = "trunk.site2"
N_EPOCHS = 6


def make_records(
    folder: Path,
    *,
    arms: tuple[Arm, ...] = ARMS,
    sizes: tuple[int, ...] = (75, 150, 300),
    n_seeds: int = 8,
    images: bool = True,
    task: str = "digits",
) -> Path:
    """Write a finished comparison into `folder`: x* helps, less so with more labels."""
    rows = {"name": task, "classes": 10, "background": ["clutter", "noise"]}
    runs: list[dict[str, Any]] = [
        {"task": rows, "arm": arm.name, "method": arm.method, "control": arm.control}
        | {"xstar_frac": arm.xstar_frac, "size": size, "seed": seed}
        for arm in arms
        for size in sizes
        for seed in range(n_seeds)
    ]
    plan = [PlannedRun(run_identity(r), r["arm"], r["size"], r["seed"]) for r in runs]
    settings = {
        "name": "demo",
        "task": rows,
        "network": {"name": "small-conv", "width": 16},
        "train": {"epochs": N_EPOCHS, "lr": 0.001},
        "arms": {arm.name: {"method": arm.method} for arm in arms if arm.control == "real"},
        "sizes": list(sizes),
        "seeds": list(range(n_seeds)),
    }
    design = Design(n_pool=20_000, test="per-seed", n_test=2000)
    write_comparison(folder, settings, arms, Metric("accuracy"), plan, design=design)
    by_name = {arm.name: arm for arm in arms}
    for run, its_settings in zip(plan, runs, strict=True):
        _make_run(folder / run.run_id, run, by_name[run.arm], sizes, images=images)
        (folder / run.run_id / "settings.json").write_text(json.dumps(its_settings))
    return folder


def run_folder(folder: Path, arm: str, size: int, seed: int) -> Path:
    """Return where the record of a run is."""
    document = json.loads((folder / "comparison.json").read_text())
    wanted = {"arm": arm, "size": size, "seed": seed}
    name: str = next(r["run_id"] for r in document["runs"] if wanted.items() <= r.items())
    return folder / name


def _make_run(
    folder: Path, run: PlannedRun, arm: Arm, sizes: tuple[int, ...], *, images: bool
) -> None:
    chance = random.Random(f"{run.arm} {run.size} {run.seed}")
    shared = random.Random(f"{run.size} {run.seed}")  # a seed's data are hard for every arm alike
    place = sizes.index(run.size) / max(len(sizes) - 1, 1)  # 0 for the smallest, 1 for the largest
    score = 0.45 + 0.24 * place + 0.06 * shared.random() + 0.03 * chance.random()
    gain = GAINS.get(arm.family or run.arm, 0.0) * arm.xstar_frac**0.25
    score += gain * (1 - 0.5 * place)
    score = round(score, 4)
    diverged = run.arm == "gaussian-dropout" and run.size == sizes[0] and run.seed == 3
    collapsed = run.seed == 5 and run.arm == "het-dropout" if arm.uses_xstar else None
    site = None if not arm.uses_xstar else _site(arm, N_EPOCHS)
    folder.mkdir(parents=True)
    rows = []
    for epoch in range(1, N_EPOCHS + 1):
        val = round(score * (1 - 0.5 / epoch), 4)
        row: dict[str, Any] = {
            "epoch": epoch,
            "lr": 0.001,
            "train": {"loss": round(2.3 / epoch, 4), "task": round(2.2 / epoch, 4)},
            "val": {"accuracy": val, "loss": round(2.3 - val, 4)},
            "sites": {SITE: _site(arm, epoch)} if site else {},
            "seconds": 0.4,
        }
        rows.append(json.dumps(row, sort_keys=True) + "\n")
    # Not by lupi.records, which waits for the disk after every row.
    (folder / "metrics.jsonl").write_text("".join(rows))
    result = {
        "format": 1,
        "status": "diverged" if diverged else "finished",
        "metrics": {
            "val": {"accuracy": score, "loss": 1.0},
            "test": {"accuracy": 0.1 if diverged else score, "loss": 1.0},
        },
        "trivial": {"accuracy": 0.1},
        "collapsed": collapsed,
        "best_epoch": N_EPOCHS,
        "epochs": N_EPOCHS,
        "restarts": 0,
        "sites": {SITE: site} if site else {},
    }
    (folder / "result.json").write_text(json.dumps(result))
    environment = {"python": "3.11.2", "torch": "2.13.0", "lupi": "0.1.0", "cpu": "two cores"}
    (folder / "environment.json").write_text(json.dumps(environment))
    if images and arm.uses_xstar and run.size == sizes[-1] and run.seed == 0:
        _make_images(folder / "samples.npz")


def _site(arm: Arm, epoch: int) -> dict[str, float]:
    apart = 0.0 if arm.control == "constant" else 0.12 * epoch
    return {
        "logvar_mean": -1.0,
        "logvar_spread": 0.5,
        "logvar_between": 0.3,
        "variance_inside": round(0.8 - apart / 2, 4),
        "variance_outside": round(0.8 + apart, 4),
    }


def _make_images(path: Path, n_images: int = 5, side: int = 32) -> None:
    row, column = np.mgrid[:side, :side]
    images, masks, variances = [], [], []
    for i in range(n_images):
        top, left = 3 + 3 * i, 14 - 2 * i
        mask = (row >= top) & (row < top + 14) & (column >= left) & (column < left + 14)
        images.append((row * 7 + column * (3 + i)) % 120 + 130 * mask)
        masks.append(mask)
        coarse = mask[::4, ::4]
        variances.append(np.where(coarse, 0.1, 0.9 + 0.05 * ((row + column)[::4, ::4] % 3)))
    arrays: dict[str, Any] = {
        "x": np.array(images, dtype=np.uint8),
        "mask": np.array(masks, dtype=np.uint8),
        "label": np.arange(n_images),
        "prediction": np.array([0, 1, 7, 3, 4])[:n_images],
        f"variance/{SITE}": np.array(variances, dtype=np.float32),
    }
    np.savez_compressed(path, allow_pickle=False, **arrays)


def drop_results(folder: Path, *, keep: int) -> None:
    """Leave a comparison as if it had been stopped after `keep` runs; the next one has failed."""
    document = json.loads((folder / "comparison.json").read_text())
    for i, run in enumerate(document["runs"]):
        if i >= keep:
            (folder / run["run_id"] / "result.json").unlink()
        if i == keep:
            text = "Traceback\nRuntimeError: out of <memory>\n"
            (folder / run["run_id"] / "failure.txt").write_text(text)
