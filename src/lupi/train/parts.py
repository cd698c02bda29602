"""A batch in parts: some rows for each process, some for each pass of gradient accumulation."""

from dataclasses import replace

from lupi.core import Batch
from lupi.nn.rows import Part, cut


def parts_of(
    batch: Batch, n_passes: int, n_processes: int = 1, rank: int = 0
) -> list[tuple[Batch, Part | None]]:
    """Return what a process has to pass of a batch, in `n_passes` or less; None: all of it."""
    if n_passes == n_processes == 1:
        return [(batch, None)]
    parts = cut(batch.y, n_passes, n_processes, rank)
    if batch.xstar is not None:
        has = batch.privileged()[1]
        parts = [replace(part, with_xstar=part.among(has)) for part in parts]
    return [(batch.part(part.own), part) for part in parts]
