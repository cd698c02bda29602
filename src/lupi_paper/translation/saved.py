"""Load the student of a translation run: weights and vocabularies, without data or x*."""

from pathlib import Path

from lupi.errors import LupiError
from lupi.files import read_json
from lupi.methods.registry import find_method
from lupi.networks.weights import uninitialised
from lupi.records import STUDENT, find_run
from lupi.train.checkpoint import load_weights
from lupi.train.settings import RunSettings
from lupi_paper.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi_paper.translation.text.vocabulary import Vocabulary
from lupi_paper.translation.translator import Translator, build_network


def load_translator(folder: Path, beam: int | None = None) -> Translator:
    """Return the student of a finished run, ready to translate.

    Args:
        folder: Folder of the run, or a folder that contains only this run.
        beam: Number of hypotheses per sentence; by default as in the run.
    """
    folder = find_run(folder)
    run = RunSettings.parse(read_json(folder / "settings.json"), str(folder / "settings.json"))
    if not isinstance(run.task, TranslationSettings):
        raise LupiError(f"{folder} is a run of task {run.task.name}, not of translation")
    if find_method(run.method).sees_xstar_at_test:
        raise LupiError(f"{folder} is a run of {run.method}, which can't translate without x*")
    if not (folder / STUDENT).exists():
        raise LupiError(f"{folder} has no student: the run diverged before its first validation")
    settings = run.task if beam is None else run.task.model_copy(update={"beam": beam})
    source, target = Vocabulary.load(folder, "source"), Vocabulary.load(folder, "target")
    weights = load_weights(folder / STUDENT)
    assert isinstance(run.network, TranslationNetworkSettings)
    with uninitialised():
        net = build_network(run.network, len(source), len(target))
    try:
        net.load_state_dict(weights, assign=True)
        net.float()
    except RuntimeError:
        raise LupiError(f"{folder / STUDENT} holds another network than the settings say") from None
    return Translator(net, source, target, settings)
