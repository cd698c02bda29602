"""Rows of a table: columns are x, x* or the target, a class or a number.

Each seed draws its own training, validation and test rows unless the table says which are which.
Everything is fitted on a run's training rows: categories, means and scales of columns, and the
unit of a target that is a number. So the length of x is known for a run (`for_run`) only.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Batch, Control, OneOutputPerRow, OutputKind, Places, Splits, XstarKind
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts, list_names
from lupi.loaders.division import Part
from lupi.loaders.files import resolve
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.loaders.tables.cells import odd_columns
from lupi.loaders.tables.columns import load_table
from lupi.loaders.tables.encoder import MAX_PRIVILEGED, TableEncoder, column_kinds
from lupi.loaders.tables.leaks import find_leaks
from lupi.loaders.tables.parts import LabelledRows
from lupi.loaders.tables.settings import TableSettings
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.tables.weights import describe_weights, loss_weights, metric_weights
from lupi.loaders.xstar.controls import control_vectors
from lupi.tasks.outcomes import TWO_CLASS_SCORE, Outcome, ScoredByOutcome
from lupi.tasks.table_network import TableNetworkSettings, build_network

if TYPE_CHECKING:
    import pandas as pd


PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows of a run, and the encoders fitted on them."""

    size: int
    seed: int
    parts: Mapping[Part, LabelledRows]
    """The training rows of the run, and all of validation and test."""
    encoder: TableEncoder
    xstar_layout: TableEncoder
    vectors: dict[Part, Tensor] = field(default_factory=dict)
    """Encoded x of the parts, filled on first use."""

    def x(self, part: Part) -> Tensor:
        """Return the encoded x of a part; it is encoded once for all arms."""
        if part not in self.vectors:
            vectors = self.encoder.transform(self.parts[part].frame)
            self.vectors[part] = torch.from_numpy(vectors)
        return self.vectors[part]


class TableTask(ScoredByOutcome, OneOutputPerRow):
    """Classification or regression of rows; x* is a vector made of the privileged columns."""

    Settings = TableSettings
    Network = TableNetworkSettings
    xstar_kind: XstarKind = "vector"
    places: Places | None = None
    xstar_dim = 0

    def __init__(self, settings: TableSettings, network: TableNetworkSettings) -> None:
        self._table = table = load_table(settings)
        self.network_settings = network
        self._settings = settings
        self._csv = resolve(settings.path, settings.dialect).model_dump()
        self.outcome = Outcome(table.classes)
        self.output_kind: OutputKind = self.outcome.output_kind
        self.metric = self.outcome.metric(settings.metric, settings.weighs("metrics"))
        self.design = table.design
        rows = table.given["train"].frame
        self._kinds = column_kinds(
            rows[list({*table.features, *table.privileged})], settings.categorical
        )
        self._run: _Run | None = None
        self._last: list[_Run] = []
        """Last fitted rows, shared with copies of the task: all arms of a seed use them."""
        without = int((~self._has_xstar(rows)).sum())
        n_bad = sum(cells.n for cells in table.bad_cells)
        found = {
            "row without x*": without,
            "cell that is no number": n_bad,
            "row without a target, left out": table.n_dropped,
        }
        self.finding_counts = {what: n for what, n in found.items() if n}

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task with everything fitted on the training rows of a run."""
        if self._run is not None and (self._run.size, self._run.seed) == (size, seed):
            return self
        if not self._last or (self._last[0].size, self._last[0].seed) != (size, seed):
            self._last[:] = [self._fit(size, seed)]
        fitted = copy.copy(self)
        fitted._run = run = self._last[0]
        fitted.xstar_dim = run.xstar_layout.width
        if not self._table.classes:
            y = run.parts["train"].y
            std = float(y.std())
            fitted.outcome = Outcome((), float(y.mean()), std if std > 0 else 1.0)
        return fitted

    def _fit(self, size: int, seed: int) -> _Run:
        table = self._table
        if size > table.division.n_train:
            raise LupiError(
                f"a training set of {size} rows was asked for; there are {table.division.n_train}"
            )
        parts = table.draw(seed)
        pool = parts["train"]
        labels = pool.y if table.classes else np.zeros(len(pool.y), dtype=np.int64)
        rows = pool.take(nested_rows(labels, size, seed, balanced=False))
        features = rows.frame[list(table.features)]
        privileged = rows.frame[list(table.privileged)]
        return _Run(
            size,
            seed,
            {**parts, "train": rows},
            TableEncoder.lay_out(features, kinds=self._kinds).fit(features),
            TableEncoder.lay_out(
                privileged, indicators=False, kinds=self._kinds, max_categories=MAX_PRIVILEGED
            ),
        )

    @property
    def _fitted(self) -> _Run:
        if self._run is None:
            raise RuntimeError("x has a length in a run only: call for_run(size, seed) first")
        return self._run

    @property
    def n_outputs(self) -> int:
        """Number of classes; 2 (mean and log-variance) for a number."""
        return self.outcome.n_outputs

    @property
    def n_rows(self) -> int:
        """Number of rows that training rows are drawn from."""
        return self._table.division.n_train

    @cached_property
    def can_reveal(self) -> bool:
        """Whether held-out rows have x*, which an oracle needs."""
        parts = self._table.draw(0)
        return all(self._has_xstar(parts[part].frame).any() for part in ("val", "test"))

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts about the data, for the user to check before training."""
        table, rows = self._table, self._table.given["train"]
        if table.classes:
            counts = dict(zip(table.classes, np.bincount(rows.y).tolist(), strict=False))
            about = f"one of {len(counts)} classes: {list_counts(counts)}"
        else:
            about = f"a number, mean {rows.y.mean():.4g}, deviation {rows.y.std():.4g}"
        weights = describe_weights(rows, self._settings)
        drawn = f"at most {self._settings.max_rows} of each file, drawn at random (max_rows)"
        dropped = f"{table.n_dropped:,} rows without a target were left out"
        return (
            Fact("x", self._columns(table.features)),
            Fact("x*", self._columns(table.privileged)),
            Fact("y", f"{self._settings.target}, {about}"),
            *([Fact("items", table.answers.describe(rows))] if table.answers else ()),
            *([Fact("weights", weights)] if weights else ()),
            *([Fact("rows", drawn)] if self._settings.max_rows else ()),
            *([Fact("rows", dropped)] if table.n_dropped else ()),
            *(Fact("cells", cells.sentence) for cells in table.bad_cells),
            *(Fact("columns", text) for text in odd_columns(rows.frame, self._kinds)),
        )

    def _columns(self, names: Sequence[str]) -> str:
        """Return the number and the names of columns of each kind, in words."""
        kinds: dict[str, list[str]] = {}
        for name in names:
            kinds.setdefault(self._kinds[name], []).append(name)
        return "; ".join(
            f"{len(some)} {PLURALS[kind] if len(some) > 1 else kind} ({list_names(some)})"
            for kind, some in kinds.items()
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What in the table may make a verdict misleading."""
        return tuple(find_leaks(self._table))

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        Classes are as frequent as in the table. The fraction is one of the training rows that
        have x* at all. With `reveal` (an oracle) held-out rows have x* too, under that control.
        """
        if reveal and not self.can_reveal:
            raise LupiError(
                "an oracle sees x* at test, and the validation or test rows of this table have "
                "none: leave the oracle out"
            )
        task = self.for_run(size, seed)
        run = task._fitted
        rows = run.parts["train"]
        has = self._has_xstar(rows.frame)
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)
        xstar_encoder = run.xstar_layout.fit(rows.frame[has])

        def plain(part: Part, weights: NDArray[np.float64] | None) -> Batch:
            weighed = None if weights is None else torch.from_numpy(weights.astype(np.float32))
            return Batch(run.x(part), task._as_target(run.parts[part].y), weights=weighed)

        def with_xstar(batch: Batch, frame: "pd.DataFrame", has: NDArray[np.bool_]) -> Batch:
            xstar = np.zeros((len(has), run.xstar_layout.width), dtype=np.float32)
            if has.any():
                vectors = xstar_encoder.transform(frame[has])
                xstar[has] = control_vectors(vectors, control, seed)
            there = torch.from_numpy(has)
            return batch._replace(xstar=torch.from_numpy(xstar), has_xstar=there)

        def held_out(part: Part) -> VectorSplit:
            some = run.parts[part]
            if self.metric.name.endswith(TWO_CLASS_SCORE) and len(np.unique(some.y)) < 2:
                raise LupiError(
                    f"metric: auc needs rows of both classes; the {part} rows of seed {seed} have "
                    f"one: raise task.{part}_frac, or judge by another metric"
                )
            batch = plain(part, metric_weights(some, part, self._settings))
            if reveal:
                batch = with_xstar(batch, some.frame, self._has_xstar(some.frame))
            return VectorSplit(batch)

        weights = loss_weights(rows, self._settings, self._table.classes)
        train = with_xstar(plain("train", weights), rows.frame, has)
        return Splits(VectorSplit(train), held_out("val"), held_out("test"))

    def preprocessing(self, size: int, seed: int) -> dict[str, Any]:
        """Return what a student needs to predict new rows, as plain values without x*.

        `csv` is how a file is read, `features` makes a `TableEncoder`; `target` says what the
        outputs mean: the class of each logit, or the mean and deviation that standardised it.
        """
        task = self.for_run(size, seed)
        target = task.outcome.describe(self._settings.target)
        return {"csv": self._csv, "features": task._fitted.encoder.to_json(), "target": target}

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        width = self._fitted.encoder.width
        return build_network(self.network_settings, width, self.outcome.n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.zeros(2, self._fitted.encoder.width)

    def _has_xstar(self, frame: "pd.DataFrame") -> NDArray[np.bool_]:
        """Return which rows have any privileged value; held-out rows may lack these columns."""
        there = [name for name in self._table.privileged if name in frame.columns]
        if len(there) < len(self._table.privileged):
            return np.zeros(len(frame), dtype=np.bool_)
        return frame[there].notna().any(axis=1).to_numpy(dtype=np.bool_).copy()

    def _as_target(self, y: NDArray[Any]) -> Tensor:
        if self.outcome.classes:
            return torch.from_numpy(y)
        return torch.from_numpy(((y - self.outcome.mean) / self.outcome.std).astype(np.float32))
