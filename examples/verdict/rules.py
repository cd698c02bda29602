"""The rules that are compared: the present one, fixed and until decided, and the one before it."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lupi
from lupi.design import Design, Looks
from lupi.verdict.judgement import Judgement
from lupi.verdict.open_questions import OPEN
from lupi.verdict.statistics.paired import p_above_zero

Floats = NDArray[np.float64]
QUIET = {"no detectable difference", "practically the same", "underpowered"}
"""What may be said of arms that are equal."""


def judge(
    columns: Mapping[str, list[Any]],
    methods: tuple[str, ...],
    controls: tuple[str, ...],
    design: Design,
    looks: Looks | None = None,
) -> Judgement:
    """Apply the whole rule to the scores of a comparison."""
    return lupi.judge(
        columns, method=methods, controls=controls, metric="accuracy", looks=looks, design=design
    )


def judge_until_decided(
    columns: Mapping[str, list[Any]],
    methods: tuple[str, ...],
    controls: tuple[str, ...],
    design: Design,
    max_seeds: int,
) -> tuple[Judgement, int]:
    """Look at more and more seeds until every question has an answer; return how many it took."""
    looks = Looks.until_decided(max_seeds)
    for n_seeds in looks.counts:
        seen = [seed < n_seeds for seed in columns["seed"]]
        part = {
            name: [value for value, is_seen in zip(values, seen, strict=True) if is_seen]
            for name, values in columns.items()
        }
        judgement = judge(part, methods, controls, design, looks)
        if not any(verdict in OPEN for verdict in judgement.verdicts.values()):
            break
    return judgement, n_seeds


def is_wrong(judgement: Judgement, right: Collection[str]) -> bool:
    """Whether a method got any other verdict than those that are right."""
    return any(verdict not in right for verdict in judgement.verdicts.values())


def old_rule(differences: Floats) -> list[str]:
    """Return the verdict of the rule before this one on an arm at each size.

    Two-sided sign flips, the largest p over the controls, Holm over the sizes of one arm; "hurts"
    looked at the first control alone. Nothing for arms, looks and shared rows.

    Args:
        differences: arm minus control, (size, control, seed), the reference first.
    """
    n_sizes, n_controls, n_seeds = differences.shape
    rows = differences.reshape(-1, n_seeds)
    p_values = np.minimum(1.0, 2 * np.minimum(p_above_zero(rows), p_above_zero(-rows)))
    table = p_values.reshape(n_sizes, n_controls)
    means = differences.mean(2)
    helps = _holm(np.where((means > 0).all(1), table.max(1), 1.0))
    hurts = _holm(np.where(means[:, 0] < 0, table[:, 0], 1.0))
    return [
        "helps" if helped else "hurts" if hurt else "no detectable difference"
        for helped, hurt in zip(helps < 0.05, hurts < 0.05, strict=True)
    ]


def _holm(p_values: Floats) -> Floats:
    order = np.argsort(p_values)
    steps = np.maximum.accumulate(p_values[order] * np.arange(p_values.size, 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def differences_of(
    columns: Mapping[str, list[Any]], arm: str, controls: tuple[str, ...], n_seeds: int
) -> Floats:
    """Return arm minus control, (size, control, seed)."""
    score = {
        key: value
        for *key_, value in zip(
            columns["arm"], columns["size"], columns["seed"], columns["score"], strict=True
        )
        for key in [tuple(key_)]
    }
    sizes = sorted(set(columns["size"]))
    return np.array(
        [
            [
                [score[arm, n, s] - score[control, n, s] for s in range(n_seeds)]
                for control in controls
            ]
            for n in sizes
        ]
    )
