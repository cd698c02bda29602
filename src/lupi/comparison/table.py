"""Default comparison of a table: arms, sizes, seeds and training, from the roles of its columns."""

from collections.abc import Mapping
from typing import Any

from lupi.comparison.defaults import default_sizes, name_question
from lupi.loaders.tables.settings import TableSettings
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings

LARGEST_SIZE = 1600
"""x* is meant for few labels: by default, training sets of a long table are no larger."""
TRAIN = {
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
ARMS: dict[str, dict[str, Any]] = {
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


def table_comparison(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw settings of a comparison on a table: arms, sizes, seeds and training.

    The arms are others where x* says how good labels are: where rows are answers to items, or
    where scores are weighted by a column of x*.

    Args:
        task: Settings of the table task: at least path, target and privileged.
    """
    settings = TableSettings.parse(task, "task")
    table = TableTask(settings, TableNetworkSettings())
    in_doubt = settings.items is not None or settings.weights in settings.privileged
    doubtful = CLASSES_IN_DOUBT if table.outcome.classes else NUMBERS_IN_DOUBT
    chosen = doubtful if in_doubt else ARMS
    arms = {name: dict(arm) for name, arm in chosen.items()}
    if not table.can_reveal:
        arms.pop("oracle", None)
    return {
        "name": name_question(settings, settings.target, settings.path),
        "task": {"name": "table", **task},
        "train": dict(TRAIN),
        "arms": arms,
        "sizes": default_sizes(table.n_rows, LARGEST_SIZE),
        "seeds": 10,
    }
