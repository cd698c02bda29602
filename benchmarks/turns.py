"""Time two functions alternately; options and output of the scripts that do.

Timings are noisy, so the two alternate in changing order, and the result is the median of the
ratios of the rounds. With one thread, CPU time is measured, which other processes affect less.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import torch

from lupi.core import Batch, Method
from lupi.train.batch_loss import Part, reduce
from lupi.train.optimizers import Optimizer
from lupi.train.settings import TrainSettings

N_WARM_UP = 2

Row = dict[str, Any]
"""what was timed, of which method, over what, the ratio, and the seconds of both; for sentences
also tokens or sentences per second"""


class Timing(argparse.ArgumentParser):
    """The options that all timings have."""

    def __init__(self, about: str | None, methods: str) -> None:
        super().__init__(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("methods", nargs="*", help=methods)
        self.add_argument("--rounds", type=int, default=6, help="measurements of each method")
        self.add_argument("--batch-size", type=int, default=32, help="rows per batch")
        self.add_argument("--threads", type=int, default=1, help="torch threads")
        self.add_argument("--json", action="store_true", help="print JSON")


def print_rows(rows: Iterable[Row], as_json: bool) -> None:
    """Print each row as soon as it was measured, or all of them as JSON."""
    if as_json:
        print(json.dumps(list(rows), indent=1))
        return
    for row in rows:
        seconds = f"{row['seconds']:.4f} / {row['seconds_over']:.4f} s"
        rate = f"  {row['per_second']:.0f} {row['unit']}/s" if "unit" in row else ""
        ratio = f"{row['ratio']:.2f} x {row['over']}"
        print(f"{row['what']:34} {row['name']:20} {ratio:22} {seconds}{rate}", flush=True)


def training_step(method: Method, *batches: Batch) -> Callable[[], None]:
    """Return what trains a method for one step on each batch, with the optimizer of a run."""
    weights = list(method.parameters())
    optimizer = Optimizer([{"params": weights}], TrainSettings())
    method.train()

    def step() -> None:
        for batch in batches:
            for weight in weights:
                weight.grad = None
            reduce(method.loss(batch), Part(batch)).total.backward()
            optimizer.step()

    return step


def time_in_turns(
    what: str,
    name: str,
    contestant: Callable[[], None],
    over: str,
    base: Callable[[], None],
    rounds: int,
) -> Row:
    """Time two in turns, and return the median of the ratios and the median seconds."""
    pair = (contestant, base)
    for _ in range(N_WARM_UP):
        contestant()
        base()
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for i in (turn % 2, 1 - turn % 2):
            started = clock()
            pair[i]()
            seconds[i].append(clock() - started)
    ratio = median(a / b for a, b in zip(*seconds, strict=True))
    return {
        "what": what,
        "name": name,
        "over": over,
        "ratio": ratio,
        "seconds": median(seconds[0]),
        "seconds_over": median(seconds[1]),
    }
