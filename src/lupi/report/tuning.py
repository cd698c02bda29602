"""The candidates and choices of tuning: rows for the page, lines for the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lupi.report.numbers import score, unit
from lupi.verdict.results import Summary, Tuning


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate of an arm."""

    arm: str
    settings: str
    score: str
    trials: str
    chosen: bool


def rows(summary: Summary) -> list[Row]:
    """Return a row for each candidate."""
    return [
        Row(
            arm=tried.arm,
            settings=_changes(tried.changes),
            score=score(tried.score, summary.metric),
            trials=f"{tried.n_finished} of {tried.n_planned}",
            chosen=tried.chosen,
        )
        for tried in (summary.tuning.candidates if summary.tuning else ())
    ]


def title(summary: Summary) -> str:
    """Return the score by which candidates are compared, or an empty string without candidates."""
    tuning = summary.tuning
    if tuning is None or not tuning.candidates:
        return ""
    seeds = "1 seed" if tuning.n_seeds == 1 else f"the mean of {tuning.n_seeds} seeds"
    return f"validation {unit(summary.metric)}, {seeds} at n = {tuning.size}"


def lines(summary: Summary) -> Iterator[str]:
    """Yield a title and, for each arm, the chosen candidate and the scores of the others."""
    tuning = summary.tuning
    if tuning is None:
        return
    if tuning.note is not None:
        yield f"How the settings were chosen: {tuning.note}"
        return
    yield f"Tuning: {title(summary)}"
    for arm in dict.fromkeys(tried.arm for tried in tuning.candidates):
        yield f"{arm}: {_choice(arm, tuning, summary.metric)}"


def _choice(arm: str, tuning: Tuning, metric: str) -> str:
    of_arm = [tried for tried in tuning.candidates if tried.arm == arm]
    chosen = next((tried for tried in of_arm if tried.chosen), None)
    if chosen is None:
        n_finished = sum(tried.n_finished for tried in of_arm)
        return f"{n_finished} of {sum(tried.n_planned for tried in of_arm)} trials finished"
    text = f"{score(chosen.score, metric)} with {_changes(chosen.changes)}"
    if chosen.number != 0:
        text += f"; initial settings {score(of_arm[0].score, metric)}"
    rest = sorted(t.score for t in of_arm if t.number and not t.chosen and t.score is not None)
    if len(rest) == 1:
        text += f"; another {score(rest[0], metric)}"
    elif rest:
        text += f"; {len(rest)} others {score(rest[0], metric)} to {score(rest[-1], metric)}"
    return text


def _changes(changes: dict[str, Any]) -> str:
    if not changes:
        return "initial settings"
    return ", ".join(
        f"{key.removeprefix('settings.')} {value}" for key, value in sorted(changes.items())
    )
