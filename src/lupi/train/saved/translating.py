"""The student of a translation run, from its folder: weights and vocabularies, no data, no x*."""

from pathlib import Path

import torch

from lupi.data.text.vocabulary import load_vocabulary
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.methods.registry import find_method
from lupi.tasks.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi.tasks.translation.translator import Translator, build_network, build_translator
from lupi.train.saved.checkpoint import load_weights
from lupi.train.saved.finished import STUDENT, find_run
from lupi.train.settings import RunSettings


def load_translator(folder: Path, beam: int | None = None) -> Translator:
    """Return the student of a finished run, ready to translate.

    Args:
        folder: of the run: see `find_run`.
        beam: hypotheses of each sentence; by default the run's setting.
    """
    folder = find_run(folder)
    run = RunSettings.parse(read_json(folder / "settings.json"), str(folder / "settings.json"))
    if run.task.get("name") != "translation":
        raise LupiError(f"{folder} is a run of task {run.task.get('name')}, not of translation")
    if find_method(run.method).sees_xstar_at_test:
        raise LupiError(f"{folder} is a run of {run.method}, which can't translate without x*")
    if not (folder / STUDENT).exists():
        raise LupiError(f"{folder} left no student ({STUDENT}): it diverged before its first score")
    options = {key: value for key, value in run.task.items() if key != "name"}
    settings = TranslationSettings.parse(options, "task")
    if beam is not None:
        settings = settings.model_copy(update={"beam": beam})
    source, target = load_vocabulary(folder, "source"), load_vocabulary(folder, "target")
    network = TranslationNetworkSettings.parse(run.network, "network")
    weights = load_weights(folder / STUDENT)
    with torch.device("meta"):  # sizes alone: nothing is allocated for settings of any size
        net = build_network(network, len(source), len(target))
    try:
        net.load_state_dict(weights, assign=True)
        net.float()
    except RuntimeError:
        raise LupiError(f"{folder / STUDENT} holds another network than the settings say") from None
    return build_translator(net, source, target, settings)
