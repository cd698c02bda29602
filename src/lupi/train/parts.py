"""A batch in parts: some rows for each process, some for each pass of gradient accumulation."""

from collections.abc import Iterator

from lupi.core import Batch
from lupi.nn.rows import Part, cut
from dataclasses import replace


def parts_of(
    batch: Batch, n_passes: int, n_processes: int = 1, rank: int = 0
) -> Iterator[tuple[Batch, Part | None]]:
    """Yield what a process has to pass of a batch, in `n_passes` or less; None: all of it."""
    if n_passes == n_processes == 1:
        yield batch, None
        return
    for part in cut(len(batch.y), n_passes, n_processes, rank):
        own = batch.part(part.own)
        if batch.xstar is None:
            yield own, part
        else:
            yield own, replace(part, with_xstar=part.among(batch.privileged()[1]))
