"""Judged comparisons written by hand, for tests that need no records."""

from lupi.verdict.results import (
    ArmSummary,
    Cell,
    Difference,
    LabelSaving,
    Statement,
    Summary,
    Verdict,
)


def cell(
    size: int = 100,
    mean: float | None = 0.6,
    verdict: Verdict = "no detectable difference",
    *,
    n_missing: int = 0,
    label_saving: LabelSaving | None = None,
    differences: tuple[Difference, ...] | None = None,
    deciding_control: str = "gaussian-dropout",
) -> Cell:
    interval = None if mean is None else (mean - 0.02, mean + 0.02)
    if differences is None:
        differences = (
            Difference("no-xstar", 0.05, (0.03, 0.07), 0.0078, 8),
            Difference("gaussian-dropout", -0.01, (-0.02, 0.01), 0.5, 8),
        )
    return Cell(
        size=size,
        n_seeds=0 if mean is None else 8 - n_missing,
        mean=mean,
        interval=interval,
        n_diverged=0,
        n_collapsed=0,
        n_missing=8 if mean is None else n_missing,
        verdict=verdict,
        differences=() if verdict == "reference" else differences,
        deciding_control=None if verdict == "reference" else deciding_control,
        label_saving=label_saving,
    )


def arm(
    name: str,
    *cells: Cell,
    uses_xstar: bool = True,
    control: str = "real",
    xstar_frac: float = 1.0,
    family: str = "",
    sees_xstar_at_test: bool = False,
) -> ArmSummary:
    method = name.partition("/")[0]
    return ArmSummary(
        name, method, control, uses_xstar, sees_xstar_at_test, xstar_frac, family, cells=cells
    )


def summary(
    *candidates: ArmSummary,
    sizes: tuple[int, ...] = (100,),
    metric: str = "accuracy",
    n_finished: int = 16,
    warnings: tuple[str, ...] = (),
    trivial: float | None = 0.1,
) -> Summary:
    reference = arm("no-xstar", *(cell(n, 0.55, "reference") for n in sizes), uses_xstar=False)
    return Summary(
        comparison="demo",
        statement=Statement("One sentence.", "Recommended: nothing.", "Exactly one sentence."),
        metric=metric,
        higher_is_better=True,
        reference="no-xstar",
        alpha=0.05,
        trivial=trivial,
        sizes=sizes,
        seeds=tuple(range(8)),
        n_planned=16,
        n_finished=n_finished,
        failed=(),
        warnings=warnings,
        arms=(reference, *candidates),
    )
