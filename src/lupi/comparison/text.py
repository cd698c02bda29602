"""Default comparison of texts with rationales, from the roles of the columns."""

import copy
from collections.abc import Mapping
from typing import Any

from lupi.comparison.defaults import default_sizes, name_question
from lupi.methods.registry import find_method
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.settings import TextSettings
from lupi.tasks.text.task import TextTask

LARGEST_SIZE = 800
"""x* is meant for few labels: by default, training sets are no larger."""
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
        "name": name_question(settings, settings.target, settings.path),
        "task": {"name": "text", **task},
        "train": dict(TRAIN),
        "arms": arms,
        "sizes": default_sizes(texts.n_rows, LARGEST_SIZE),
        "seeds": 10,
    }
