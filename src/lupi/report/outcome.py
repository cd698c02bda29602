"""The overall state of a comparison, shown at the top of the page."""

from dataclasses import dataclass
from typing import Literal

from lupi.verdict.results import LOOKS, Look, Summary, XstarVerdict
from lupi.verdict.roles import is_candidate
from lupi.verdict.words import MOST_INFORMATIVE_FIRST

State = XstarVerdict | Literal["mixed", "incomplete", "nothing to judge"]

STATES: dict[State, Look] = {
    **{verdict: LOOKS[verdict] for verdict in MOST_INFORMATIVE_FIRST},
    "mixed": Look("", "◆", "x* helps in some cases and hurts in others"),
    "incomplete": Look("", "…", "Incomplete"),
    "nothing to judge": Look("", "–", "No verdict"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A state with its label and sign."""

    state: State
    label: str
    sign: str


def outcome(summary: Summary) -> Outcome:
    """Summarise the verdicts of the candidates; with missing runs, the state is `incomplete`."""
    candidates = [arm for arm in summary.arms if is_candidate(arm)]
    words = {cell.verdict for arm in candidates for cell in arm.cells}
    words |= {arm.overall.verdict for arm in candidates if arm.overall is not None}
    state: State = next((w for w in MOST_INFORMATIVE_FIRST if w in words), "nothing to judge")
    if {"helps", "hurts"} <= words:
        state = "mixed"
    label = STATES[state].label
    if summary.statement.is_confirmed is not None:
        label += f", {'' if summary.statement.is_confirmed else 'not '}confirmed"
    if summary.n_finished < summary.n_planned:
        so_far = f", so far: {label}" if state != "nothing to judge" and summary.n_finished else ""
        runs = f"{summary.n_finished} of {summary.n_planned} runs"
        state, label = "incomplete", f"Incomplete ({runs}){so_far}"
    return Outcome(state, label, STATES[state].sign)
