"""Default comparison of texts with rationales, from the roles of the columns."""

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.methods.registry import find_method
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.settings import TextSettings
from lupi.tasks.text.task import TextTask

SIZES = (50, 100, 200, 400)
SMALLEST_SIZE = 20
LARGEST_FRACTION = 1 / 3
"""Fraction of all rows: seeds whose training rows overlap more are not independent."""
# Tried on 2,000 movie reviews, for no-xstar and het-dropout alike.
TRAIN = {
    "optimizer": "adamw",
    "lr": 0.1,
    "weight_decay": 0.0,
    "batch_size": 25,
    "steps_per_epoch": 16,
    "epochs": 10,
    "schedule": "one-cycle",
}
AT_WORDS = {"sites": ["trunk.words"], "draw": "example"}
ARMS: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "gaussian-dropout": {"method": "gaussian-dropout", "settings": {**AT_WORDS, "variance": 2.0}},
    "het-dropout": {
        "method": "het-dropout",
        "settings": {
            **AT_WORDS,
            "prior": {"inside": 0.0, "outside": 2.0},
            "learn": False,
            "missing": "none",
        },
        "controls": ["shuffled", "random"],
    },
    "contrast": {"method": "contrast", "controls": ["shuffled"]},
    "views": {"method": "views", "controls": ["shuffled"]},
    "oracle": {"method": "oracle"},
    "linear": {"method": "linear", "settings": {"penalty": [0.001, 0.01, 0.1, 1.0, 10.0]}},
}


def text_comparison(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw settings of a comparison on texts: arms, sizes, seeds and training.

    Args:
        task: Settings of the text task: at least path, text, target and rationale.
    """
    settings = TextSettings.parse(task, "task")
    texts = TextTask(settings, TextNetworkSettings())
    arms = copy.deepcopy(ARMS)
    if settings.lexicon is not None:
        arms["het-dropout"]["controls"].append("lexicon")
    if not texts.can_reveal:
        del arms["oracle"]
    if texts.output_kind not in find_method("contrast").output_kinds:
        del arms["contrast"]
    return {
        "name": _name(settings.path),
        "task": {"name": "text", **task},
        "train": dict(TRAIN),
        "arms": arms,
        "sizes": default_sizes(texts.n_rows, texts.design.n_pool),
        "seeds": 10,
    }


def default_sizes(n_train: int, n_pool: int) -> list[int]:
    """Return those of 50, 100, 200 and 400 that are at most a third of all rows; else a third."""
    if n_train < SMALLEST_SIZE:
        raise LupiError(
            f"{n_train} rows are left for training; a comparison takes {SMALLEST_SIZE} or more"
        )
    most = min(n_train, int(LARGEST_FRACTION * n_pool))
    return [size for size in SIZES if size <= most] or [max(SMALLEST_SIZE, most)]


def _name(path: Path) -> str:
    """Return the file's name as the name of a comparison."""
    stem = path.name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._") or "texts"
