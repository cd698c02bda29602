"""The types that all packages share: batches, tasks and methods.

x is the input of a network, x* (`xstar`) is known in training only, y is the target.
"""

from lupi.core.batch import Batch, Inputs, Losses, RowLoss, SortableSplit, Split, Splits
from lupi.core.method import Method, Stage, seed_torch
from lupi.core.outcomes import Outcome, OutputKind
from lupi.core.task import (
    Bools,
    Control,
    Divides,
    Generated,
    Places,
    RowNumbers,
    Rows,
    RunRows,
    Shown,
    Task,
    TaskKind,
    XstarKind,
)
from lupi.settings import derive_seed

__all__ = [
    "Batch",
    "Bools",
    "Control",
    "Divides",
    "Generated",
    "Inputs",
    "Losses",
    "Method",
    "Outcome",
    "OutputKind",
    "Places",
    "RowLoss",
    "RowNumbers",
    "Rows",
    "RunRows",
    "Shown",
    "SortableSplit",
    "Split",
    "Splits",
    "Stage",
    "Task",
    "TaskKind",
    "XstarKind",
    "derive_seed",
    "seed_torch",
]
