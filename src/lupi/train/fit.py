"""Train any method: all that is used of it are its stages, its loss and its student.

A run makes one or more attempts (a diverged one may start again), an attempt goes through the
method's stages, a stage through epochs. All randomness is a function of (seed, attempt, epoch of
the stage). So a killed run resumes after its last saved epoch and reaches the same numbers, and a
student that is trained after its teacher sees the same batches and dropout as one without.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lupi.core import Method, Splits, Stage, Task
from lupi.train.epochs import noise_sites, train_epoch, validate
from lupi.train.optimizers import Optimizer, build_optimizer
from lupi.train.parallel.processes import OneProcess, Processes
from lupi.train.passes import TrainingLoss
from lupi.train.saved.checkpoint import TrainingFiles
from lupi.train.settings import TrainSettings
from lupi.train.state import Fitted, Row, Schedule, State


def fit(
    build: Callable[[int], Method],
    task: Task,
    splits: Splits,
    settings: TrainSettings,
    seed: int,
    folder: Path,
    on_epoch: Callable[[Row], None] = lambda row: None,
    processes: Processes | None = None,
) -> Fitted:
    """Train a method, or resume the training that `folder` records.

    Args:
        build: Builds the method for attempt 0, 1, …, with other initial weights each time.
        task: Task, which scores the outputs.
        splits: Training rows with x*, validation rows without.
        settings: How to train.
        seed: Seed of the noise and of the order of batches.
        folder: Folder for metrics.jsonl and checkpoint/.
        on_epoch: Called with each new row of metrics.
        processes: Processes that train together; by default this one alone.
    """
    processes = processes or OneProcess(settings.precision, settings.device)
    files = TrainingFiles(folder, processes)
    training = _Training(task, splits, settings, seed, files, on_epoch, processes)
    saved = files.resume()
    state = State(**saved["state"]) if saved else State()
    method = training.attempt(build(state.attempt), state, saved)
    while state.diverged and state.attempt < settings.n_restarts:
        files.forget_best()
        state = State(attempt=state.attempt + 1)
        method = training.attempt(build(state.attempt), state)
    if state.diverged and state.best_epoch:
        files.load_best(method)
    files.flush()
    return Fitted(
        method,
        status="diverged" if state.diverged else "finished",
        best_epoch=state.best_epoch,
        epochs=state.epoch - state.diverged,
        restarts=state.attempt,
    )


@dataclass(frozen=True, slots=True)
class _Training:
    """What all attempts, stages and epochs of a run share."""

    task: Task
    splits: Splits
    settings: TrainSettings
    seed: int
    files: TrainingFiles
    on_epoch: Callable[[Row], None]
    processes: Processes

    def attempt(self, method: Method, state: State, saved: dict[str, Any] | None = None) -> Method:
        """Train a method to the end of its last stage, or until it diverges.

        `state` says where to start, and is updated; `saved` is the checkpoint of that state.
        """
        self.processes.place(method)
        method.n_rows = len(self.splits.train)
        if saved:
            method.load_state_dict(saved["method"])
        stages = method.stages()
        for stage in stages[state.stage :]:
            with method.during(stage):
                self.stage(method, stage, state, saved["optimizer"] if saved else None)
            saved = None
            if state.diverged:
                break
            if stage.validates:
                self.files.load_best(method)
            state.stage, state.scores = state.stage + 1, []
            # The next stage may replace the best student: a resumed run must not repeat this one.
            self.files.save(asdict(state), method, at_once=state.stage < len(stages))
        return method

    def stage(
        self, method: Method, stage: Stage, state: State, optimizer_state: dict[str, Any] | None
    ) -> None:
        """Train epoch by epoch until the schedule ends; save what is needed to resume."""
        settings = _stage_settings(stage, self.settings)
        module = self.processes.wrap(TrainingLoss(method))
        optimizer = build_optimizer(_learning(method.parameter_groups()), settings)
        if optimizer_state:
            optimizer.load_state_dict(optimizer_state)
        schedule = Schedule(settings, state.scores)
        while not (state.diverged or schedule.finished):
            row = state.next_row(stage.name, schedule.lr)
            row |= self.epoch(method, module, optimizer, stage, settings, row)
            row = self.processes.broadcast(row)  # so that all processes decide alike
            if state.update(row, self.task.metric.of_an_epoch):
                # `lupi analyse` reads the helper networks that set the noise.
                self.files.save_best(method, with_helpers=bool(row["sites"]))
            self.files.append(row)
            self.files.save(asdict(state), method, optimizer)
            self.on_epoch(row)

    def epoch(
        self,
        method: Method,
        module: Any,
        optimizer: Optimizer,
        stage: Stage,
        settings: TrainSettings,
        row: Row,
    ) -> Row:
        """Train and validate once; return losses, scores and noise."""
        started = time.perf_counter()
        task, splits, processes = self.task, self.splits, self.processes
        method.start_epoch(row["stage_epoch"])
        train = train_epoch(
            processes, method, module, optimizer, splits.train, settings, self.seed, row
        )
        val = None
        if stage.validates:
            val = validate(processes, method, task, splits, settings, row["stage_epoch"])
        sites = noise_sites(processes, method, task, splits.train)
        seconds = round(time.perf_counter() - started, 4)
        return {"train": train, "val": val, "sites": sites, "seconds": seconds}


def _stage_settings(stage: Stage, settings: TrainSettings) -> TrainSettings:
    """Return the training settings of a stage; without validation no schedule can adapt."""
    changes = dict(stage.train)
    if not stage.validates and settings.schedule == "adaptive":
        changes.setdefault("schedule", "constant")
    if not changes:
        return settings
    return TrainSettings.parse({**settings.resolved(), **changes}, f"stage {stage.name}")


def _learning(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return groups of weights without the weights that a stage froze."""
    learning = [
        {**group, "params": [weight for weight in group["params"] if weight.requires_grad]}
        for group in groups
    ]
    return [group for group in learning if group["params"]]
