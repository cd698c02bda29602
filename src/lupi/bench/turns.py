"""Time two functions alternately.

Timings are noisy, so the two alternate in changing order, and the result is the median of the
ratios of the rounds. With one thread, CPU time is measured, which other processes affect less.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from lupi.core import Batch, Method
from lupi.train.optimizers import build_optimizer
from lupi.train.passes import reduce
from lupi.train.settings import TrainSettings

N_WARM_UP = 2

Row = dict[str, Any]
"""what was timed, of which method, over what, the ratio, and the seconds of both; for sentences
also tokens or sentences per second"""


def training_step(method: Method, *batches: Batch) -> Callable[[], None]:
    """Return what trains a method for one step on each batch, with the optimizer of a run."""
    weights = list(method.parameters())
    optimizer = build_optimizer([{"params": weights}], TrainSettings())
    method.train()

    def step() -> None:
        for batch in batches:
            for weight in weights:
                weight.grad = None
            reduce(method.loss(batch), batch).total.backward()
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
