import csv
import re

import pytest
from summaries import arm, cell, summary

from lupi.report.tables import csv_text, latex, markdown
from lupi.verdict.results import LabelSaving, Statement, Summary

EVIL = r"a_b & 50% {x} \end{tabular} #1 ~^ $"


def judged(name: str = "het-dropout") -> Summary:
    saving = LabelSaving("no-xstar", "measured", 1.5, (1.2, None))
    cells = cell(100, 0.6, "helps", label_saving=saving), cell(200, None)
    return summary(arm(name, *cells), sizes=(100, 200))


def rows_of(text: str) -> list[list[str]]:
    """Read a tabular as LaTeX would: environment, rules, cells, groups and math that close."""
    code = [line for line in text.splitlines() if not re.match(r"\s*%", line)]
    assert re.fullmatch(r"\\begin\{tabular\}\{l(r+)\}", code[0])
    assert code[-1] == r"\end{tabular}"
    n_columns = len(code[0]) - len(r"\begin{tabular}{}")
    rows = []
    for line in code[1:-1]:
        if line in (r"\toprule", r"\midrule", r"\bottomrule"):
            continue
        assert line.endswith(r" \\")
        cells = re.split(r"(?<!\\)&", line.removesuffix(r"\\"))
        assert len(cells) == n_columns
        for text_of_cell in cells:
            assert not re.search(r"(?<!\\)[%#_~]", text_of_cell)
            assert len(re.findall(r"(?<!\\)\$", text_of_cell)) in (0, 2)
            opened = re.findall(r"(?<!\\)\{", text_of_cell)
            assert len(opened) == len(re.findall(r"(?<!\\)\}", text_of_cell))
        rows.append([text_of_cell.strip() for text_of_cell in cells])
    return rows


def test_latex_is_a_table_with_its_numbers() -> None:
    rows = rows_of(latex(judged()))
    assert rows[0] == ["Arm", "$n = 100$", "$n = 200$"]
    assert rows[2] == ["het-dropout", r"$60.0 \pm 2.0^{\mathrm{+}}$", "--"]


def test_latex_takes_any_name() -> None:
    rows = rows_of(latex(judged(EVIL)))
    assert len(rows) == 3
    assert r"50\% \{x\} \textbackslash{}end\{tabular\} \#1" in rows[2][0]


def test_a_headline_cannot_leave_its_comment() -> None:
    from dataclasses import replace

    text = latex(
        replace(judged(), statement=Statement("One\n\\input{secrets}", "", "Two\n\\input{more}"))
    )
    assert "% One \\input{secrets}\n" in text
    assert rows_of(text)


def test_markdown_has_a_cell_per_size_whatever_the_name() -> None:
    lines = markdown(judged("a|b*c")).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert r"| a\|b\*c | 60.0 ± 2.0 + | – |" in table
    assert "Verdicts: + helps" in lines[-1]


def test_csv_has_every_number_as_it_is() -> None:
    rows = list(csv.DictReader(csv_text(judged(EVIL)).splitlines()))
    assert len(rows) == 2 + 2 * 2  # the reference at two sizes, and two controls at each
    over_plain, over_control = rows[2:4]
    assert (over_plain["arm"], over_plain["method"], over_plain["control"]) == (EVIL, EVIL, "real")
    assert (float(over_plain["mean"]), float(over_plain["mean_low"])) == (0.6, 0.58)
    assert (over_plain["against"], over_plain["difference"]) == ("no-xstar", "0.05")
    assert (over_plain["label_saving"], over_plain["label_saving_high"]) == ("1.5", "")
    assert (over_control["against"], over_control["is_deciding"]) == ("gaussian-dropout", "True")
    assert float(over_control["difference"]) == pytest.approx(-0.01)
    assert rows[4]["mean"] == ""
