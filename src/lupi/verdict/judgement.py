"""The result of `lupi.judge`, as text, HTML or rows."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from lupi.records import Metric
from lupi.verdict.answer import ArmSummary, Cell, LabelSaving, Verdict
from lupi.verdict.words.headline import interval_text, signed

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("arm", "n", "seeds", "mean", "verdict", "against", "difference", "95 % interval", "p")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judged scores, to print or to show in a notebook."""

    headline: str
    """One sentence: which method, where, by how much, how certain."""
    metric: str
    higher_is_better: bool
    reference: str
    methods: tuple[str, ...]
    alpha: float
    looks: tuple[int, ...]
    """Numbers of seeds at which results were inspected."""
    arms: tuple[ArmSummary, ...]
    """Every arm, with all its numbers at each size."""
    warnings: tuple[str, ...]

    @property
    def verdicts(self) -> dict[tuple[str, int], Verdict]:
        """The verdict on each method at each size."""
        return {
            (arm.name, cell.size): cell.verdict
            for arm in self.arms
            if arm.name in self.methods
            for cell in arm.cells
            if cell.verdict != "not run"
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per arm, size and control, with unrounded numbers."""
        return [row for arm in self.arms for cell in arm.cells for row in _rows(arm, cell)]

    def to_frame(self) -> "pd.DataFrame":
        """Return `rows` as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the headline, a table and the warnings."""
        table = [HEADS, *self._lines()]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEADS))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        warnings = [f"! {warning}" for warning in self.warnings]
        return "\n".join([self.headline, "", *lines, *warnings])

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in HEADS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>"
            for line in self._lines()
        )
        warnings = "".join(f"<p>{escape(warning)}</p>" for warning in self.warnings)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p><b>{escape(self.headline)}</b></p>{table}{warnings}"

    def _lines(self) -> Iterator[tuple[str, ...]]:
        """Yield a line for each arm and size, with the deciding difference."""
        metric = Metric(self.metric, self.higher_is_better)
        for arm in self.arms:
            for cell in arm.cells:
                if cell.mean is None:
                    continue
                deciding = cell.deciding
                numbers = ("", "", "", "")
                if deciding is not None:
                    numbers = (
                        deciding.other,
                        signed(deciding.mean, metric),
                        interval_text(deciding, metric),
                        "< 0.001" if deciding.p_value < 0.001 else f"{deciding.p_value:.3f}",
                    )
                size = str(cell.size) if cell.size else ""
                yield (
                    arm.name,
                    size,
                    str(cell.n_seeds),
                    f"{cell.mean:.4g}",
                    cell.verdict,
                    *numbers,
                )


def _rows(arm: ArmSummary, cell: Cell) -> Iterator[dict[str, Any]]:
    start = {
        "arm": arm.name,
        "size": cell.size,
        "n_seeds": cell.n_seeds,
        "mean": cell.mean,
        "verdict": cell.verdict,
    }
    if not cell.differences:
        yield start
    for difference in cell.differences:
        yield {
            **start,
            "against": difference.other,
            "is_strongest": difference.other == cell.strongest,
            "difference": difference.mean,
            "low": difference.interval[0],
            "high": difference.interval[1],
            "p_value": difference.p_value,
            "n_pairs": difference.n_pairs,
            **_saving(cell, difference.other),
        }


def _saving(cell: Cell, other: str) -> dict[str, Any]:
    found: LabelSaving | None = next(
        (s for s in (cell.label_saving, cell.label_saving_strongest) if s and s.other == other),
        None,
    )
    low, high = (found.interval if found else None) or (None, None)
    return {
        "label_saving": found.factor if found else None,
        "label_saving_low": low,
        "label_saving_high": high,
    }
