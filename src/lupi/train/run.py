"""One run: an arm, a training-set size and a seed, from its settings to its record."""

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch

from lupi import __version__
from lupi.classical.fitting import score_classical
from lupi.classical.models import Classical
from lupi.core import Batch, Method, Splits, Task, derive_seed, seed_torch
from lupi.errors import LupiError
from lupi.files import (
    DamagedRecordError,
    locked,
    read_rows,
    set_run_aside,
    write_json,
    write_text,
)
from lupi.loaders.xstar.reveal import reveal
from lupi.methods.registry import build_method
from lupi.records import FORMAT, read_finished_result, write_result
from lupi.settings import Settings, TaskSettings
from lupi.tasks.registry import build_task
from lupi.train.attention import look
from lupi.train.evaluate import compute_outputs, is_collapsed
from lupi.train.learners import find_learner
from lupi.train.loop import Fitted, Row, fit
from lupi.train.processes import Processes
from lupi.train.samples import write_samples
from lupi.train.settings import RunSettings

LoadTask = Callable[[TaskSettings, Settings], Task]


def run(
    settings: RunSettings,
    folder: Path,
    on_epoch: Callable[[Row], None] = lambda row: None,
    processes: Processes | None = None,
    load: LoadTask = build_task,
) -> dict[str, Any]:
    """Do a run, or the rest of it, and return its result. A finished run is only read.

    Args:
        settings: Settings of the run, with the fingerprint of its data.
        folder: Folder of the record.
        on_epoch: Called with each new row of metrics.
        processes: Processes that train together; by default this one alone. Each of them calls
            this function; the first writes the record, the others return an empty dict.
        load: Builds the task from its settings and those of its network. A worker passes one that
            keeps the data in memory.
    """
    processes = processes or Processes(settings.train.precision, settings.train.device)
    resolved = settings.resolved()
    if processes.rank > 0:
        if not processes.broadcast(False):
            _record(settings, resolved, folder, on_epoch, processes, load)
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        try:
            result = read_finished_result(folder, resolved)
        except DamagedRecordError as error:
            set_run_aside(folder, str(error))
            result = None
        if processes.broadcast(result is not None):
            return result or {}
        try:
            return _record(settings, resolved, folder, on_epoch, processes, load)
        except DamagedRecordError as error:  # of the checkpoint: start again
            if processes.count > 1:
                raise
            set_run_aside(folder, str(error))
            return _record(settings, resolved, folder, on_epoch, processes, load)


def _record(
    settings: RunSettings,
    resolved: dict[str, Any],
    folder: Path,
    on_epoch: Callable[[Row], None],
    processes: Processes,
    load: LoadTask,
) -> dict[str, Any]:
    """Do a run; the first process writes its record and returns the result."""
    writes = processes.rank == 0
    if writes:
        _start_record(settings, resolved, folder, processes)
    torch.set_num_threads(settings.train.n_threads)
    task = load(settings.task, settings.network).for_run(settings.size, settings.seed)
    learner = find_learner(settings.method)
    if issubclass(learner, Classical):
        result = _run_classical(learner, settings, task) if writes else {}
    else:
        splits = splits_for(learner, task, settings)
        preprocessing = task.fitted.preprocessing()
        if preprocessing and writes and not settings.trial:
            write_json(folder / "preprocessing.json", preprocessing)
        if writes:
            task.fitted.save(folder)
        build = partial(new_method, task, settings.method, settings.settings, settings.seed)
        train, seed = settings.train, settings.seed
        fitted = fit(build, task, splits, train, seed, folder, on_epoch, processes)
        result = _score(settings, folder, task, splits, fitted, processes)
        method = fitted.method
        if writes and fitted.best_epoch and not settings.trial:
            looked = look(method, task, settings, preprocessing or {}, folder)
            if looked is not None:
                result["metrics"]["test"]["pointing"] = looked.pointing
                result["pointing_chance"] = looked.chance
                if method.teaches_attention:
                    result["collapsed"] = looked.pointing <= looked.chance
        if writes and method.uses_xstar and settings.control == "real" and not settings.trial:
            write_samples(folder, method, task, splits, preprocessing or {}, processes)
    if writes:
        write_result(folder, result)
        (folder / "checkpoint/last.safetensors").unlink(missing_ok=True)
        if settings.trial:  # its student is never used
            shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return result


def _start_record(
    settings: RunSettings, resolved: dict[str, Any], folder: Path, processes: Processes
) -> None:
    (folder / "failure.txt").unlink(missing_ok=True)
    for left in folder.rglob(".*.tmp"):  # from an attempt that was killed while writing
        left.unlink()
    write_json(folder / "settings.json", resolved)
    environment = {
        "lupi": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "device": str(processes.device),
        "threads": str(settings.train.n_threads),
        "processes": str(processes.count),
    }
    write_json(folder / "environment.json", environment)


def _score(
    settings: RunSettings,
    folder: Path,
    task: Task,
    splits: Splits,
    fitted: Fitted,
    processes: Processes,
) -> dict[str, Any]:
    """Return the result of a run: scores of its student, and the noise at its best epoch."""
    scored = {"val": splits.val} if settings.trial else {"val": splits.val, "test": splits.test}
    judged_by = "val" if settings.trial else "test"
    trivial = task.outcome.trivial(splits.train, scored[judged_by])
    metrics = {name: trivial if name == judged_by else {} for name in scored}
    signatures: dict[str, str] = {}
    if fitted.best_epoch:
        outputs = {
            name: compute_outputs(fitted.method, split, processes=processes)
            for name, split in {**scored, **splits.also}.items()
        }
        score = task.outcome.metrics
        metrics = {name: score(*found) for name, found in outputs.items() if name != "test"}
        if not settings.trial:
            metrics |= splits.score_test(score, *outputs["test"])
    if processes.rank > 0:
        return {}
    if fitted.best_epoch:
        signatures = _generate(task, fitted.method, splits, folder, metrics)
    sites = noise_at_best_epoch(read_rows(folder / "metrics.jsonl")[0], fitted)
    return {
        **({"data": dict(task.finding_counts)} if task.finding_counts else {}),
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


def noise_at_best_epoch(epochs: list[Row], fitted: Fitted) -> dict[str, dict[str, float]]:
    """Return the statistics of the noise in the epoch whose student is scored.

    Args:
        epochs: Rows of metrics.
        fitted: Result of the training that wrote them.
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
    """Save what the student generates for the scored rows; add its scores to `metrics`.

    Return how each score was computed.
    """
    signatures: dict[str, str] = {}
    parts: tuple[Literal["val", "test"], ...] = ("val", "test") if "test" in metrics else ("val",)
    for part in parts:
        generated = task.fitted.generate(method.net, getattr(splits, part), part)
        if generated is None:
            break
        write_text(folder / f"{part}.txt", "".join(f"{line}\n" for line in generated.lines))
        metrics[part] |= generated.scores
        signatures = generated.signatures
    return signatures


def _run_classical(model: type[Classical], settings: RunSettings, task: Task) -> dict[str, Any]:
    """Fit a model without epochs and without a student; return a result like a network's."""
    splits = task.splits(settings.size, settings.seed, settings.control, settings.xstar_frac)
    own, n_threads = settings.settings, settings.train.n_threads
    return {
        "format": FORMAT,
        "status": "finished",
        "metrics": score_classical(model, own, task, splits, settings.seed, n_threads),
        "trivial": task.outcome.trivial(splits.train, splits.test),
        "collapsed": None,
        "sites": {},
        "best_epoch": 0,
        "epochs": 0,
        "restarts": 0,
    }


class ForbiddenSplit:
    """Stands for the test rows of a trial, which may use validation rows only: reading it fails."""

    def __len__(self) -> NoReturn:
        raise RuntimeError("a trial must not look at test rows")

    def batches(self, batch_size: int, shuffle: torch.Generator | None = None) -> Iterator[Batch]:
        """Raise an error."""
        raise RuntimeError("a trial must not look at test rows")


def splits_for(method: type[Method], task: Task, settings: RunSettings) -> Splits:
    """Return the rows of a run. Only an oracle gets the x* of validation and test rows.

    A trial gets test rows that can't be read.
    """
    if settings.control == "lexicon" and task.places != "words":
        raise LupiError("control lexicon: it is for texts; this task has none")
    options = (settings.size, settings.seed, settings.control, settings.xstar_frac)
    if method.sees_xstar_at_test:
        splits = reveal(task.splits(*options, reveal=True))
    else:
        splits = task.splits(*options)
    return replace(splits, test=ForbiddenSplit(), also={}) if settings.trial else splits


def new_method(
    task: Task, method: str, settings: Settings | Mapping[str, Any], seed: int, attempt: int
) -> Method:
    """Build a method over a new student; every attempt (0, 1, …) starts from other weights."""
    # The student's weights come first and alone: every arm starts from the same ones.
    seed_torch(derive_seed(seed, "student", attempt))
    net = task.network()
    seed_torch(derive_seed(seed, "method", attempt))
    return build_method(method, settings, net, task)
