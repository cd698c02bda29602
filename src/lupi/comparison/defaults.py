"""Default comparisons of tables, texts and tasks of the user: arms, sizes, seeds and training."""

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupi.core import Task
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.loaders.tables.settings import TableSettings
from lupi.methods.registry import find_method
from lupi.records import default_folder
from lupi.settings import fingerprint
from lupi.tasks.custom import register_task
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.settings import TextSettings
from lupi.tasks.text.task import TextTask

ROLES = ("path", "target", "privileged", "text", "rationale", "features", "ignore")
"""Settings that make a question: what is predicted from what, with which x*."""
SMALLEST_SIZE = 20
LARGEST_TABLE, LARGEST_TEXTS = 1600, 800
"""x* is meant for few labels: by default, training sets are no larger."""
N_SEEDS = 10

TRAIN_TABLE = {
    "epochs": 12,
    "batch_size": 32,
    "steps_per_epoch": 25,
    "lr": 0.003,
    "weight_decay": 0.001,
    "schedule": "adaptive",
    "patience": 4,
    "n_decays": 1,
}
SOFT = {"imitation": 0.5}
"""Distillation and its control weight the teacher as much as the label."""
# Noise of variance 1 is as strong as the network's Bernoulli dropout of 0.5.
TABLE_ARMS: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "gaussian-dropout": {"method": "gaussian-dropout", "settings": {"variance": 1.0}},
    "het-dropout": {
        "method": "het-dropout",
        "settings": {"prior": 1.0, "beta": 0.1},
        "controls": ["shuffled"],
    },
    "distillation": {"method": "distillation", "settings": SOFT, "controls": ["shuffled"]},
    "self-distillation": {"method": "self-distillation", "settings": SOFT},
    "oracle": {"method": "oracle"},
    "gradient-boosting": {"method": "gradient-boosting"},
    "linear": {"method": "linear"},
}
# If x* says how good a label is: methods without x*, then methods with x*.
CLASSES_IN_DOUBT: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "label-smoothing": {"method": "label-smoothing"},
    "confusion": {"method": "confusion"},
    "het-likelihood": {"method": "het-likelihood", "controls": ["shuffled"]},
    "pi-dual": {"method": "pi-dual", "controls": ["shuffled"]},
    "gradient-boosting": {"method": "gradient-boosting"},
    "linear": {"method": "linear"},
}
NUMBERS_IN_DOUBT: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "huber": {"method": "huber", "settings": {"delta": 0.5}},
    "het-likelihood": {"method": "het-likelihood", "controls": ["shuffled"]},
    "gradient-boosting": {"method": "gradient-boosting"},
    "linear": {"method": "linear"},
}
# Tried on 2,000 movie reviews, for no-xstar and het-dropout alike.
TRAIN_TEXTS = {
    "optimizer": "adamw",
    "lr": 0.1,
    "weight_decay": 0.0,
    "batch_size": 25,
    "steps_per_epoch": 16,
    "epochs": 10,
    "schedule": "one-cycle",
}
AT_WORDS = {"sites": ["trunk.words"], "draw": "example"}
TEXT_ARMS: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "gaussian-dropout": {"method": "gaussian-dropout", "settings": {**AT_WORDS, "variance": 2.0}},
    "het-dropout": {
        "method": "het-dropout",
        "settings": {
            **AT_WORDS,
            "prior": {"inside": 0.0, "outside": 2.0},
            "noise": "fixed",
            "missing": "none",
        },
        "controls": ["shuffled", "random"],
    },
    "contrast": {"method": "contrast", "controls": ["shuffled"]},
    "views": {"method": "views", "controls": ["shuffled"]},
    "oracle": {"method": "oracle"},
    "linear": {"method": "linear", "settings": {"penalty": [0.001, 0.01, 0.1, 1.0, 10.0]}},
}
CUSTOM_ARMS: dict[str, dict[str, Any]] = {
    **{name: TABLE_ARMS[name] for name in ("no-xstar", "gaussian-dropout")},
    "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
}


def table_comparison(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw settings of a comparison on a table.

    The arms are others where x* says how good labels are: where rows are answers to items, or
    where scores are weighted by a column of x*.

    Args:
        task: Settings of the table task: at least path, target and privileged.
    """
    settings = TableSettings.parse(task, "task")
    table = TableTask(settings, TableNetworkSettings())
    in_doubt = settings.items is not None or settings.weights in settings.privileged
    doubtful = CLASSES_IN_DOUBT if table.outcome.classes else NUMBERS_IN_DOUBT
    arms = copy.deepcopy(doubtful if in_doubt else TABLE_ARMS)
    if not table.can_reveal:
        arms.pop("oracle", None)
    name, sizes = name_question(settings), default_sizes(table.n_rows, LARGEST_TABLE)
    return _raw(name, {"name": "table", **task}, TRAIN_TABLE, arms, sizes)


def text_comparison(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw settings of a comparison on texts.

    Args:
        task: Settings of the text task: at least path, text, target and rationale.
    """
    settings = TextSettings.parse(task, "task")
    texts = TextTask(settings, TextNetworkSettings())
    arms = copy.deepcopy(TEXT_ARMS)
    if settings.lexicon is not None:
        arms["het-dropout"]["controls"].append("lexicon")
    if not texts.can_reveal:
        del arms["oracle"]
    if texts.output_kind not in find_method("contrast").output_kinds:
        del arms["contrast"]
    name, sizes = name_question(settings), default_sizes(texts.n_rows, LARGEST_TEXTS)
    return _raw(name, {"name": "text", **task}, TRAIN_TEXTS, arms, sizes)


def custom_comparison(task: Task, sizes: list[int] | None = None) -> dict[str, Any]:
    """Return the raw settings of a comparison on a user's task, a Python object."""
    sizes = sizes or default_sizes(task.n_rows, LARGEST_TABLE)
    named = register_task(task, max(sizes), 0)
    name = f"custom-{named['content'][:8]}"
    return _raw(name, named, TRAIN_TABLE, copy.deepcopy(CUSTOM_ARMS), sizes)


def _raw(
    name: str,
    task: Mapping[str, Any],
    train: Mapping[str, Any],
    arms: Mapping[str, Any],
    sizes: list[int],
) -> dict[str, Any]:
    return {
        "name": name,
        "task": task,
        "train": dict(train),
        "arms": arms,
        "sizes": sizes,
        "seeds": N_SEEDS,
    }


def default_sizes(n_train: int, largest: int, n_sizes: int = 3) -> list[int]:
    """Return sizes, each twice the previous; the last is all rows, `largest` at most."""
    if n_train < SMALLEST_SIZE:
        raise LupiError(
            f"{n_train} rows are left for training; a comparison takes {SMALLEST_SIZE} or more"
        )
    last = min(n_train, largest)
    sizes = [last // 2**i for i in reversed(range(n_sizes))]
    return [size for size in sizes if size >= SMALLEST_SIZE]


def name_question(settings: TableSettings | TextSettings) -> str:
    """Return the file's name, with the target if that name's folder answers another question.

    So another question about the same file has a folder of its own.
    """
    path, target = settings.path, settings.target
    stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    asked = _question(settings.model_dump(mode="json"))
    plain, longer = plain_name(stem) or "data", plain_name(f"{stem}-{target}")
    for name in (plain, longer):
        if _answered(default_folder(name)) in (None, asked):
            return name
    return f"{longer}-{fingerprint(asked)[:6]}"


def _answered(folder: Path) -> dict[str, Any] | None:
    """Return the question that the comparison in a folder answers; None if there is none."""
    try:
        return _question(read_json(folder / "comparison.json")["settings"]["task"])
    except (OSError, LupiError, KeyError, TypeError, ValueError):
        return None


def _question(task: Mapping[str, Any]) -> dict[str, Any]:
    return {role: task[role] for role in ROLES if task.get(role)}


def plain_name(name: str) -> str:
    """Return a name that is good for a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
