"""A batch in parts: some rows for each process, some for each pass of gradient accumulation."""

import contextlib
from collections.abc import Iterator

from torch import nn

from lupi.core import Batch
from lupi.core.whole_batch import CutBatch, cut
from lupi.nn.cut_layers import layers_of_the_whole_batch


def parts_of(batch: Batch, n_passes: int, n_processes: int = 1, rank: int = 0) -> list[Batch]:
    """Return what a process has to pass of a batch, in `n_passes` or less."""
    if n_passes == n_processes == 1:
        return [batch]
    has = None if batch.xstar is None else batch.privileged()[1]
    parts = cut(len(batch.y), has, n_passes, n_processes, rank)
    return [
        batch.select(slice(part.rows.own.start, part.rows.own.stop))._replace(whole=part)
        for part in parts
    ]


@contextlib.contextmanager
def training_pass(method: nn.Module, part: Batch) -> Iterator[None]:
    """Let the pass inside the block be that of a part of a batch."""
    if not isinstance(part.whole, CutBatch):
        yield
        return
    with layers_of_the_whole_batch(method, part.whole):
        yield
