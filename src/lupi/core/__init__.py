"""The types that all packages share: batches, tasks and methods.

x is the input of a network, x* (`xstar`) is known in training only, y is the target.
"""

from lupi.core.batch import Batch, Inputs, Losses, RowLoss
from lupi.core.method import Method, Stage, seed_torch
from lupi.core.task import (
    Control,
    Generated,
    GivenRows,
    OneOutputPerRow,
    OutputKind,
    Places,
    SortableSplit,
    Split,
    Splits,
    Task,
    XstarKind,
)
from lupi.settings import derive_seed

__all__ = [
    "Batch",
    "Control",
    "Generated",
    "GivenRows",
    "Inputs",
    "Losses",
    "Method",
    "OneOutputPerRow",
    "OutputKind",
    "Places",
    "RowLoss",
    "SortableSplit",
    "Split",
    "Splits",
    "Stage",
    "Task",
    "XstarKind",
    "derive_seed",
    "seed_torch",
]
