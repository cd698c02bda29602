"""The summary of a comparison as a Markdown, LaTeX or CSV table."""

import csv
import io
from collections.abc import Callable

from lupi.escapes import csv_cell, markdown_text
from lupi.report.terminal import marks_text
from lupi.verdict.results import LOOKS, Cell, Summary
from lupi.verdict.units import NOTHING, half_width, score, unit


def markdown(summary: Summary) -> str:
    """Return the scores as a Markdown table, with the headline above and the marks below."""
    heads = ["arm", *(f"n = {size}" for size in summary.sizes)]
    lines = [
        [arm.name, *(_entry(cell, summary.metric) for cell in arm.cells)] for arm in summary.arms
    ]
    rows = [heads, ["---", *["---:"] * len(summary.sizes)], *lines]
    table = "\n".join("| " + " | ".join(markdown_text(c) for c in row) + " |" for row in rows)
    words = markdown_text(f"{summary.headline} {summary.statement.exact}")
    return f"{words}\n\n{table}\n\n{_note(summary)}\n"


def latex(summary: Summary) -> str:
    r"""Return the scores as a LaTeX `tabular` with booktabs; comments explain the marks."""
    columns = "l" + "r" * len(summary.sizes)
    heads = ["Arm", *(f"$n = {size}$" for size in summary.sizes)]
    lines = [
        " & ".join([_latex_text(arm.name), *(_latex_entry(c, summary.metric) for c in arm.cells)])
        for arm in summary.arms
    ]
    body = "".join(f"{line} \\\\\n" for line in lines)
    return (
        f"{_comment(summary.headline)}{_comment(summary.statement.exact)}{_comment(_note(summary))}"
        f"% Needs \\usepackage{{booktabs}}.\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{' & '.join(heads)} \\\\\n\\midrule\n"
        f"{body}\\bottomrule\n\\end{{tabular}}\n"
    )


def csv_text(summary: Summary) -> str:
    """Return one CSV line per arm, size and control with unrounded numbers."""
    arms = {arm.name: arm for arm in summary.arms}
    rows = []
    for row in summary.rows():
        arm = arms[row["arm"]]
        about = {"method": arm.method, "control": arm.control, "xstar_frac": arm.xstar_frac}
        rows.append({"comparison": summary.comparison, "metric": summary.metric, **about, **row})
    stream = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: csv_cell(value) for name, value in row.items()})
    return stream.getvalue()


FORMATS: dict[str, Callable[[Summary], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": csv_text,
}


def _entry(cell: Cell, metric: str) -> str:
    if cell.mean is None:
        return NOTHING
    spread = f" ± {half_width(cell.interval, metric)}" if cell.interval else ""
    return f"{score(cell.mean, metric)}{spread} {LOOKS[cell.verdict].mark}".rstrip()


def _latex_entry(cell: Cell, metric: str) -> str:
    if cell.mean is None:
        return "--"
    spread = rf" \pm {half_width(cell.interval, metric)}" if cell.interval else ""
    mark = LOOKS[cell.verdict].mark.strip().replace("≈", r"\approx")
    power = rf"^{{\mathrm{{{mark}}}}}" if mark else ""
    return f"${score(cell.mean, metric)}{spread}{power}$"


def _note(summary: Summary) -> str:
    marks = marks_text(summary)
    text = f"{unit(summary.metric)} on test data: mean ± half the 95 % interval over seeds."
    return text + (f" Verdicts: {marks}." if marks else "")


LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex_text(text: str) -> str:
    return "".join(LATEX_ESCAPES.get(character, character) for character in text)


def _comment(text: str) -> str:
    return f"% {' '.join(text.split())}\n"
