"""One run: an arm, a training-set size and a seed, from its settings to its record."""

import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from filelock import FileLock

from lupi import __version__
from lupi.classical.fitting import score_classical
from lupi.classical.models import Classical
from lupi.core import Batch, Method, Splits, Task, derive_seed, seed_torch
from lupi.data.xstar.reveal import reveal
from lupi.errors import LupiError
from lupi.files import read_rows, write_json, write_text
from lupi.methods.registry import build_method
from lupi.records import FORMAT, read_result
from lupi.tasks.registry import build_task
from lupi.train.evaluate import is_collapsed, outputs
from lupi.train.fit import fit
from lupi.train.learners import find_learner
from lupi.train.parallel.processes import OneProcess, Processes
from lupi.train.saved.samples import write_samples
from lupi.train.settings import RunSettings
from lupi.train.state import Fitted, Row

LoadTask = Callable[[dict[str, Any], dict[str, Any]], Task]


def run(
    settings: RunSettings,
    folder: Path,
    on_epoch: Callable[[Row], None] = lambda row: None,
    processes: Processes | None = None,
    load: LoadTask = build_task,
) -> dict[str, Any]:
    """Do a run, or what is left of it, and return its result. A finished run is only read.

    Args:
        settings: resolved.
        folder: of the record.
        on_epoch: called with each new row of metrics.
        processes: that train together; by default this one alone. All of them
            call this, the first one writes, and the others return nothing.
        load: makes the task from its settings and the network's: a worker has its data already.
    """
    processes = processes or OneProcess(settings.train.precision, settings.train.device)
    if processes.rank > 0:
        if not processes.broadcast(None):
            _run(settings, folder, on_epoch, processes, load)
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if processes.broadcast((folder / "result.json").exists()):
            return read_result(folder)
        (folder / "failure.txt").unlink(missing_ok=True)
        for left in folder.rglob(".*.tmp"):  # by an attempt that was killed while it wrote
            left.unlink()
        write_json(folder / "settings.json", settings.resolved())
        write_json(folder / "environment.json", _environment(settings, processes))
        result = _run(settings, folder, on_epoch, processes, load)
        write_json(folder / "result.json", result)
        (folder / "checkpoint/last.safetensors").unlink(missing_ok=True)
        if settings.trial:
            # nobody ships the student of a trial
            shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        return result


def _run(
    settings: RunSettings,
    folder: Path,
    on_epoch: Callable[[Row], None],
    processes: Processes,
    load: LoadTask,
) -> dict[str, Any]:
    torch.set_num_threads(settings.train.n_threads)
    task = load(settings.task, settings.network).for_run(settings.size, settings.seed)
    learner = find_learner(settings.method)
    if issubclass(learner, Classical):
        return _run_classical(learner, settings, task) if processes.rank == 0 else {}
    splits = splits_for(learner, task, settings)
    if settings.trial:
        splits = replace(splits, test=Sealed(), also={})
    preprocessing = task.preprocessing(settings.size, settings.seed)
    writes = processes.rank == 0
    if preprocessing and writes and not settings.trial:  # whose student is not kept
        write_json(folder / "preprocessing.json", preprocessing)
    if writes:
        task.save(folder)

    build = builder(task, settings.method, settings.settings, settings.seed)
    fitted = fit(build, task, splits, settings.train, settings.seed, folder, on_epoch, processes)
    scored = {"val": splits.val} if settings.trial else {"val": splits.val, "test": splits.test}
    judged_by = "val" if settings.trial else "test"
    trivial = task.trivial(splits.train, scored[judged_by])
    metrics = {name: trivial if name == judged_by else {} for name in scored}
    if fitted.best_epoch:
        metrics = {
            name: task.metrics(*outputs(fitted.method, split, processes=processes))
            for name, split in {**scored, **splits.also}.items()
        }
    if not writes:
        return {}
    signatures: dict[str, str] = {}
    if fitted.best_epoch:
        signatures = _generate(task, fitted.method, splits, folder, metrics)
    if fitted.method.uses_xstar and settings.control == "real" and not settings.trial:
        write_samples(folder, fitted.method, task, splits, preprocessing or {}, processes)
    sites = noise_of_scored_weights(read_rows(folder / "metrics.jsonl")[0], fitted)
    return {
        **({"data": dict(task.found)} if task.found else {}),
        **({"signatures": signatures} if signatures else {}),
        "format": FORMAT,
        "status": fitted.status,
        "metrics": metrics,
        "trivial": trivial,
        "collapsed": is_collapsed(sites),
        "sites": sites,
        "best_epoch": fitted.best_epoch,
        "epochs": fitted.epochs,
        "restarts": fitted.restarts,
    }


def noise_of_scored_weights(epochs: list[Row], fitted: Fitted) -> dict[str, dict[str, float]]:
    """Return the description of the noise in the epoch whose student is scored.

    Args:
        epochs: the rows of metrics.
        fitted: what they are of.
    """
    last_attempt = [row for row in epochs if row["attempt"] == fitted.restarts]
    scored = [row for row in last_attempt if row["epoch"] == fitted.best_epoch]
    sites: dict[str, dict[str, float]] = (scored or last_attempt[-1:])[0]["sites"]
    return sites


def _generate(
    task: Task,
    method: Method,
    splits: Splits,
    folder: Path,
    metrics: dict[str, dict[str, float]],
) -> dict[str, str]:
    """Keep what the student writes for the rows that metrics has scores of, and add its scores."""
    signatures: dict[str, str] = {}
    parts: tuple[Literal["val", "test"], ...] = ("val", "test") if "test" in metrics else ("val",)
    for part in parts:
        generated = task.generate(method.net, getattr(splits, part), part)
        if generated is None:
            break
        write_text(folder / f"{part}.txt", "".join(f"{line}\n" for line in generated.lines))
        metrics[part] |= generated.scores
        signatures = generated.signatures
    return signatures


def _run_classical(model: type[Classical], settings: RunSettings, task: Task) -> dict[str, Any]:
    """Return a result like a network's, of a model that has no epochs and no student."""
    splits = task.splits(settings.size, settings.seed, settings.control, settings.xstar_frac)
    own, n_threads = model.Settings.parse(settings.settings, "settings"), settings.train.n_threads
    return {
        "format": FORMAT,
        "status": "finished",
        "metrics": score_classical(model, own, task, splits, settings.seed, n_threads),
        "trivial": task.trivial(splits.train, splits.test),
        "collapsed": None,
        "sites": {},
        "best_epoch": 0,
        "epochs": 0,
        "restarts": 0,
    }


class Sealed:
    """The test rows of a trial, which looks at validation rows only: reading them is a bug."""

    def __len__(self) -> NoReturn:
        raise RuntimeError("a trial must not look at test rows")

    def batches(self, batch_size: int, shuffle: torch.Generator | None = None) -> Iterator[Batch]:
        """Refuse."""
        raise RuntimeError("a trial must not look at test rows")


def splits_for(method: type[Method], task: Task, settings: RunSettings) -> Splits:
    """Return the rows of a run: x* is revealed outside of training to an oracle and nobody else."""
    if settings.control == "lexicon" and task.places != "words":
        raise LupiError("control lexicon: it is for texts; this task has none")
    options = (settings.size, settings.seed, settings.control, settings.xstar_frac)
    if method.sees_xstar_at_test:
        return reveal(task.splits(*options, reveal=True))
    return task.splits(*options)


def builder(task: Task, method: str, settings: Any, seed: int) -> Callable[[int], Method]:
    """Return what builds a method over a new student for attempt 0, 1, …: other weights each."""

    def build(attempt: int) -> Method:
        # The student's weights come first and alone: every arm starts from the same ones.
        seed_torch(derive_seed(seed, "student", attempt))
        net = task.network()
        seed_torch(derive_seed(seed, "method", attempt))
        return build_method(method, settings, net, task)

    return build


def _environment(settings: RunSettings, processes: Processes) -> dict[str, str]:
    return {
        "lupi": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "device": str(processes.device),
        "threads": str(settings.train.n_threads),
        "processes": str(processes.count),
    }
