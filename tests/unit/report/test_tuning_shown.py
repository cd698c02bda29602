import io
import re
from dataclasses import replace

from rich.console import Console
from summaries import arm, cell, summary

from lupi.report.sentences import settings_text, tuning_lines
from lupi.report.sheets.sheet import templates
from lupi.report.terminal import SummaryTable
from lupi.verdict.results import Summary, Trial, Tuning
from lupi.verdict.units import score

CANDIDATES = (
    Trial("no-xstar", 0, {}, 2, 2, 0.44, True),
    Trial("no-xstar", 1, {"network.dropout": 0.31}, 2, 2, 0.41, False),
    Trial("no-xstar", 2, {"network.dropout": 0.11}, 2, 2, 0.4, False),
    Trial("het-dropout", 0, {}, 2, 2, 0.5, False),
    Trial("het-dropout", 1, {"settings.prior": 0.7, "settings.beta": 0.02}, 2, 2, 0.588, True),
)


def tuned(tuning: Tuning | None) -> Summary:
    return replace(summary(arm("het-dropout", cell())), tuning=tuning)


def text(judged: Summary) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(SummaryTable(judged))
    return stream.getvalue()


def test_the_choice_stands_beside_what_else_was_tried() -> None:
    judged = tuned(Tuning(None, 150, 2, (), CANDIDATES))
    assert list(tuning_lines(judged)) == [
        "Tuning: validation accuracy, %, the mean of 2 seeds at n = 150",
        "no-xstar: 44.0 with initial settings; 2 others 40.0 to 41.0",
        "het-dropout: 58.8 with beta 0.02, prior 0.7; initial settings 50.0",
    ]
    assert "  het-dropout: 58.8 with beta 0.02, prior 0.7; initial settings 50.0" in text(judged)


def test_the_page_has_a_row_for_each_candidate() -> None:
    template = templates().get_template("tuning.html.j2")
    judged = tuned(Tuning(None, 150, 2, (), CANDIDATES))
    functions = {"settings_text": settings_text, "score": score}
    page = template.render(tuning=judged.tuning, summary=judged, tuning_title="", **functions)
    row = r'<td class="word">(.*?)</td><td>(.*?)</td>.*?>(<strong>chosen</strong>)?</td>'
    rows = re.findall(row, page)
    assert [shown for _, shown, _ in rows] == ["44.0", "41.0", "40.0", "50.0", "58.8"]
    assert [bool(chosen) for _, _, chosen in rows] == [True, False, False, False, True]
    assert rows[1][0] == "network.dropout 0.31"


def test_trials_under_way_are_counted() -> None:
    waiting = tuple(replace(tried, chosen=False, n_finished=1) for tried in CANDIDATES)
    assert "no-xstar: 3 of 6 trials finished" in list(
        tuning_lines(tuned(Tuning(None, 150, 2, (), waiting)))
    )


def test_a_sentence_or_nothing() -> None:
    assert "How the settings were chosen: by hand" in text(tuned(Tuning("by hand")))
    assert list(tuning_lines(tuned(None))) == []
