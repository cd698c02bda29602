"""Check the data of a comparison before its first run: facts and warnings."""

from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from lupi.core import Batch, Task
from lupi.facts import Fact
from lupi.preflight import features, outlook
from lupi.preflight.finding import find_region
from lupi.preflight.relation import Relation, Ridge, compare_features, relation

MAX_ROWS = 500
"""Maximum number of training rows that are checked."""
MIN_ROWS = 20
"""With fewer rows, no relation could be detected."""
MIN_TEST_ROWS = 30
"""With fewer, time and groups together leave too few."""
N_MISPLACED = 39
"""Number of sets of random regions that the real ones are compared with."""
COVERS_ALL = 0.95


class Preflight(NamedTuple):
    """Facts about the data, and warnings."""

    facts: tuple[Fact, ...]
    warnings: tuple[str, ...]


def check_data(task: Task, size: int, seed: int) -> Preflight:
    """Check the rows of a run, which should be as large as any of the comparison."""
    splits = task.splits(size, seed)
    n_train, n_val, n_test = map(len, (splits.train, splits.val, splits.test))
    rows = f"{n_train:,} training (largest size), {n_val:,} validation, {n_test:,} test"
    facts = [*task.facts, Fact("rows", rows), Fact("replicates", _replicates(task, size))]
    batch = next(iter(splits.train.batches(MAX_ROWS)))
    warnings: list[str] = []
    if task.design.groups and task.design.time and n_test < MIN_TEST_ROWS:
        warnings.append(
            f"time and groups together leave {n_test} test rows, since later rows of groups with "
            "earlier ones are left out: scores are coarse; use one of the two, or more groups"
        )
    if task.xstar_dim and batch.has_xstar is not None:
        n_with, n_seen = int(batch.has_xstar.sum()), len(batch.y)
        facts.append(Fact("rows with x*", f"{n_with:,} of {n_seen:,} ({n_with / n_seen:.0%})"))
        known = features.with_xstar(batch)
        if task.xstar_kind == "region":
            facts.append(Fact("region", _coverage(known, warnings)))
        if len(known.y) >= MIN_ROWS:
            with threadpool_limits(1):  # matrices are small: threads would wait for one another
                if known.y.dim() == 1 and bool((known.y == known.y[0]).all()):
                    one = "all rows with x* have the same y: what x* says about y can't be checked"
                    facts.append(Fact("x* and y", one))
                    return Preflight(tuple(facts), tuple(warnings))
                facts.append(Fact("x* and y", _related(known, task, warnings)))
                if task.xstar_kind == "region" and (found := find_region(known)) is not None:
                    facts.append(Fact("finding x*", str(found)))
                if task.output_kind != "tokens":
                    is_region = task.xstar_kind == "region"
                    expected = outlook.of_region(known) if is_region else outlook.of_vector(known)
                    facts.append(Fact("outlook", str(expected)))
    return Preflight(tuple(facts), tuple(warnings))


def _replicates(task: Task, size: int) -> str:
    design = task.design
    drawn = "each seed draws its own training rows"
    if design.test == "per-seed":
        drawn = "each seed draws its own training, validation and test rows"
    overlap = design.overlap(size)
    shared = f"; two seeds share {overlap:.0%} of their training rows" if overlap >= 0.01 else ""
    return f"{drawn} from {design.n_pool:,}{shared}. A verdict holds for {design.scope(size)}"


def _coverage(known: Batch, warnings: list[str]) -> str:
    if known.xstar is None or not len(known.y):
        return "none"
    shares = known.xstar.flatten(1).double()
    if known.xstar.dim() == 3:  # words: padding is no part of a text
        share = shares.sum(1) / (known.x != 0).sum(1).clamp(min=1)
    else:
        share = shares.mean(1)
    low, middle, high = np.quantile(share.numpy(), [0.1, 0.5, 0.9])
    if middle >= COVERS_ALL:
        warnings.append(
            f"x* covers everything: {middle:.0%} of x in the median row. If masks use several "
            "values, such as 1, 2 and 3 in trimaps, name those of the object: task.mask_values"
        )
    return (
        f"covers {percent(middle)} of x in the median row ({percent(low)} to {percent(high)} in "
        "most)"
    )


def percent(share: float) -> str:
    """Return a fraction as a percentage with two digits that count: 14%, 1.4%, 0.14%."""
    value = 100 * share
    digits = 0 if value >= 10 or value == 0 else 1 if value >= 1 else 2 if value >= 0.01 else 4
    return f"{value:.{digits}f}%"


def _related(known: Batch, task: Task, warnings: list[str]) -> str:
    """Return whether x* relates to y, in words; add a warning if no relation is detected."""
    rng = np.random.default_rng(0)
    y = features.of_target(known.y)
    assert known.xstar is not None
    if task.xstar_kind == "region":
        found = _inside(known)
        if not found.is_seen:
            warnings.append(
                f"the part of x inside the region predicts y no better than a part elsewhere "
                f"({_p(found)}, {len(y):,} rows): x* may not say where to look"
            )
        better = "better" if found.is_seen else "no better"
        return (
            f"the part of x inside the region predicts y {better} (R2 {found.r2:.2f}) than a part "
            f"of the same shape elsewhere, {_p(found)}"
        )
    vectors = features.of_vector(known.xstar)
    left = Ridge(features.of_x(known.x)).errors(y)
    size = np.sqrt((left**2).sum(1, keepdims=True))
    relations = {
        "y": relation(vectors, y, rng),
        "the residual of a linear model of x": relation(vectors, left, rng),
        "the size of that residual": relation(vectors, size, rng),
    }
    if not any(one.p_value <= 0.05 / len(relations) for one in relations.values()):
        warnings.append(
            "x* shows no relation to y, to the residual of a linear model of x, or to the size of "
            f"that residual ({', '.join(_p(one) for one in relations.values())}; {len(y):,} rows): "
            "it is unlikely to help"
        )
    said = {what: f"{what} (R2 {one.r2:.2f}, {_p(one)})" for what, one in relations.items()}
    seen = [said[what] for what, one in relations.items() if one.is_seen and one.r2 > 0]
    unseen = [text for text in said.values() if text not in seen]
    return "; ".join(
        f"x* {verb} {', '.join(some)}"
        for verb, some in (("predicts", seen), ("does not predict", unseen))
        if some
    )


def _inside(known: Batch) -> Relation:
    assert known.xstar is not None
    generator = torch.Generator().manual_seed(0)
    others = [
        features.inside(known.x, features.misplaced(known.xstar, known.x, generator))
        for _ in range(N_MISPLACED)
    ]
    y = features.of_target(known.y)
    return compare_features(features.inside(known.x, known.xstar), others, y)


def _p(found: Relation) -> str:
    return f"p = {found.p_value:.3f}"
