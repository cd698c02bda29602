"""Progress of a comparison: a live table of arms x sizes, or a few lines."""

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lupi.comparison.jobs import Event
from lupi.interface.console import MAX_LINES, can_redraw, print_message, stderr, time_text
from lupi.records import ComparisonRecord, PlannedRun


class LiveTable:
    """Shows the events of a comparison: of its runs, or of the trials before them."""

    def __init__(self, record: ComparisonRecord, split: str = "test", trials: bool = False) -> None:
        """Start from what is on disk; show scores on the rows of `split`."""
        runs = record.trials if trials else record.runs
        self._what, self._split = "trials" if trials else "runs", split
        self._metric = record.metric.name
        self._metric_of_an_epoch = record.metric.of_an_epoch.name
        self._arms = [row.name for row in (record.candidates if trials else record.arms)]
        self._cells: dict[str, list[PlannedRun]] = defaultdict(list)
        for run in runs:
            self._cells[run.plan.run_id].append(run.plan)
        self._sizes = sorted({run.plan.size for run in runs})
        self._n_seeds = len({run.plan.seed for run in runs})
        self._scores: dict[tuple[str, int], list[float]] = defaultdict(list)
        self._running: dict[str, str] = {}
        self._failed: list[str] = []
        self._peak_memory = 0
        finished = [run for run in runs if run.result is not None]
        for run in finished:
            assert run.result is not None
            self._add_score(run.plan.run_id, run.result, [run.plan])
        self._progress = Progress(
            TextColumn(self._what),
            BarColumn(None),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=stderr,
        )
        n_done = len({run.plan.run_id for run in finished})
        self._task = self._progress.add_task(self._what, total=len(self._cells), completed=n_done)
        self._n_done = n_done

    def follow(self, events: Iterable[Event]) -> None:
        """Show events until there are no more."""
        if can_redraw():
            with Live(self._view(), console=stderr, refresh_per_second=4) as live:
                for event in events:
                    self._update(event)
                    live.update(self._view())
        else:
            self._follow_in_lines(events)
        if self._peak_memory:
            print_message(f"memory of a worker: {self._peak_memory / 1e9:.2f} GB at most")
        for text in self._failed:
            print_message(text, "failed", "red")

    def _update(self, event: Event) -> None:
        self._peak_memory = max(self._peak_memory, event.peak_memory)
        plan = self._cells[event.run_id][0]
        name = f"{plan.arm}, n = {plan.size}, seed {plan.seed}"
        if event.what == "started":
            self._running[event.run_id] = name
        elif event.what == "epoch":
            val = event.content["val"]
            if val is None:  # a stage without a student to score
                status = f"{event.content['stage']} stage"
            else:
                name_of_score = self._metric_of_an_epoch
                score = val.get(name_of_score)
                status = "diverged" if score is None else f"{name_of_score} {score:.3f}"
            self._running[event.run_id] = f"{name}: epoch {event.content['epoch']}, {status}"
        else:
            self._running.pop(event.run_id, None)
            self._n_done += 1
            self._progress.update(self._task, completed=self._n_done)
            if event.what == "finished":
                self._add_score(event.run_id, event.content, self._cells[event.run_id])
            else:
                self._failed.append(f"{name}: {event.content['error']}")

    def _add_score(self, run_id: str, result: dict[str, Any], plans: Iterable[PlannedRun]) -> None:
        for plan in plans:
            score = result["metrics"].get(self._split, {}).get(self._metric)
            if score is not None:
                self._scores[plan.arm, plan.size].append(score)

    def _follow_in_lines(self, events: Iterable[Event]) -> None:
        """Print about `MAX_LINES` lines at even distances, and one at the end."""
        started, n_before, n_all = time.monotonic(), self._n_done, len(self._cells)
        every = max(1, -(-(n_all - n_before) // MAX_LINES))  # rounded up
        for event in events:
            self._update(event)
            n_now = self._n_done - n_before
            ended = event.what in ("finished", "failed")
            if ended and (n_now % every == 0 or self._n_done == n_all):
                seconds = time.monotonic() - started
                left = seconds / n_now * (n_all - self._n_done)
                rest = f", {time_text(left)} left" if self._n_done < n_all else ""
                end = self._describe_end(event)
                print_message(f"[{self._n_done}/{n_all}] {end} ({seconds:.0f} s{rest})")

    def _describe_end(self, event: Event) -> str:
        plan = self._cells[event.run_id][0]
        score = event.content.get("metrics", {}).get(self._split, {}).get(self._metric)
        status = "failed" if score is None else f"{self._split} {self._metric} {score:.3f}"
        return f"{plan.arm}, n = {plan.size}, seed {plan.seed}: {status}"

    def _view(self) -> RenderableType:
        table = Table(
            box=None, pad_edge=False, title=f"{self._split} {self._metric}, finished {self._what}"
        )
        table.add_column("arm", overflow="fold")
        for size in self._sizes:
            table.add_column(f"n = {size}", justify="right", no_wrap=True)
        for arm in self._arms:
            table.add_row(escape(arm), *(self._cell(arm, size) for size in self._sizes))
        now = [f"  {escape(text)}" for text in self._running.values()]
        return Group(table, self._progress, *now)

    def _cell(self, arm: str, size: int) -> str:
        scores = self._scores.get((arm, size), [])
        mean = f"{sum(scores) / len(scores):.3f}" if scores else "    "
        return f"{mean} [dim]{len(scores)}/{self._n_seeds}[/]"
