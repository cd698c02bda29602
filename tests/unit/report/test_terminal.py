import io
import re

from rich.console import Console
from summaries import arm, cell, summary

from lupi.report.terminal import SummaryTable
from lupi.verdict.results import LabelSaving, Summary


def text(judged: Summary, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(SummaryTable(judged))
    return stream.getvalue()


def test_reads_without_colour() -> None:
    saving = LabelSaving("no-xstar", "measured", 1.8, (1.4, 2.3))
    helped = cell(100, 0.6, "helps", label_saving=saving), cell(200, 0.7)
    shown = text(
        summary(arm("het-dropout", *helped), sizes=(100, 200), warnings=("Mind the gap.",))
    )
    assert "\x1b" not in shown
    assert "demo: x* helps\nOne sentence. Recommended: nothing.\nExactly one sentence.\n" in shown
    assert "het-dropout  60.0 ± 2.0 +" in shown
    assert "+ helps" in shown
    assert "het-dropout: no-xstar 80 more at n = 100 (1.8×, 1.4 to 2.3)" in shown
    assert "! Mind the gap." in shown


def test_fits_80_columns_whatever_the_sizes_and_names() -> None:
    sizes = tuple(2**i for i in range(5, 14))
    long_name = "a-method-with-a-name-that-nobody-would-want-to-type/shuffled"
    methods = [arm(name, *(cell(n) for n in sizes)) for name in ("het-dropout", long_name)]
    shown = text(summary(*methods, sizes=sizes, warnings=("word " * 60,)))
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert all(re.search(rf"n = {size}\b", shown) for size in sizes)
    assert "…" not in shown


def test_wide_consoles_hold_all_sizes_in_one_table() -> None:
    sizes = tuple(2**i for i in range(5, 14))
    judged = summary(arm("het-dropout", *(cell(n) for n in sizes)), sizes=sizes)
    assert text(judged, 200).count("\nno-xstar ") == 1
    assert text(judged, 80).count("\nno-xstar ") > 1


def test_sizes_not_measured_and_markup_in_names() -> None:
    shown = text(summary(arm("[red]het[/red]", cell(100, None, "underpowered")), n_finished=8))
    assert "[red]het[/red]" in shown
    assert "–" in shown
    assert "Incomplete (8 of 16 runs)" in shown


def test_metrics_that_are_no_shares() -> None:
    shown = text(summary(arm("het-dropout", cell(100, 31.25)), metric="rmse", trivial=None))
    assert "31.25 ± 0.02 ." in shown
    assert "predictor that ignores" not in shown
