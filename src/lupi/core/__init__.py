"""The vocabulary everyone shares: batches, tasks, and what a method is.

x is what a network sees at any time, x* (`xstar`) what exists in training only, y the target.
"""

from lupi.core.batch import Batch, Inputs, Losses, RowLoss
from lupi.core.method import Method, Stage, derive_seed, seed_torch
from lupi.core.task import (
    Control,
    Generated,
    GivenRows,
    OneOutputPerRow,
    OutputKind,
    Places,
    Split,
    Splits,
    Task,
    XstarKind,
)

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
    "Split",
    "Splits",
    "Stage",
    "Task",
    "XstarKind",
    "derive_seed",
    "seed_torch",
]
