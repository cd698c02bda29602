"""The rules for verdicts: the interval of each difference, and the verdict that follows.

x* gets credit only if an arm beats *every* control. The first verdict that applies is given:

    collapsed                 at least half of the runs no longer depend on x*, whatever the scores
    helps                     better than every control
    hurts                     worse than every control
    worse than a control      worse than some of them, such as plain noise
    better than plain only    better than the reference, but not better than every control
    practically the same      every difference is smaller than the margin
    underpowered              too few seeds for any verdict
    no detectable difference  everything else

"better", "worse" and "smaller" mean that the whole interval of the difference is. Arms that can't
show anything about x* are "better than plain", "worse than plain", or one of the last three.

Each side of an interval has a confidence of 97.5 % for its own comparison, but an end that would
exclude zero is moved to zero unless the claim also holds for the whole family of questions, at a
family-wise error of 2.5 % per direction:

- Every control: "better than all" is an intersection-union test (Berger 1982), whose p is the
  largest; it needs no correction for the number of controls. "Worse than one of them" does.
- Every arm with x* and every size: Hochberg's correction (`family.py`). An arm that can't show
  anything about x* is corrected over its own sizes and does not affect the questions about x*.
- Every look: `sequential.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lupi.verdict.answer import Difference, Verdict
from lupi.verdict.statistics.family import adjusted, threshold
from lupi.verdict.statistics.paired import smallest_p
from lupi.verdict.statistics.sequential import SequentialTest

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """One arm at one size, and the tests of its differences from the controls."""

    tests: dict[str, SequentialTest]
    """Tests by control, the reference first; only controls with common seeds."""
    n_controls: int
    """Number of controls; a control without common seeds counts as not beaten."""
    margin: float
    about_xstar: bool = True
    """Whether the arm can show that x* helps."""
    collapsed: bool = False

    @property
    def p_better(self) -> float:
        """P-value of "better than every control"."""
        return self._largest([test.p_above() for test in self.tests.values()])

    @property
    def p_worse(self) -> float:
        """P-value of "worse than every control"."""
        return self._largest([test.p_below() for test in self.tests.values()])

    def p_worse_than(self, control: str) -> float:
        """P-value of "worse than this control", chosen among all of them."""
        return min(self.n_controls * self.tests[control].p_below(), self.p_worse)

    def _largest(self, p_values: Sequence[float]) -> float:
        return max(p_values) if p_values and len(p_values) == self.n_controls else 1.0


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer to a question."""

    verdict: Verdict
    differences: tuple[Difference, ...]
    strongest: str | None
    """The deciding control: the one with the least evidence that the arm is better or, if the arm
    is worse than all controls, the least evidence that it is worse."""


def judge_family(questions: Sequence[Question]) -> list[Judged]:
    """Answer a family of questions, corrected for multiple testing."""
    p_better = [question.p_better for question in questions]
    p_worse = [question.p_worse for question in questions]
    return [
        _judge(question, p_better[:i] + p_better[i + 1 :], p_worse[:i] + p_worse[i + 1 :])
        for i, question in enumerate(questions)
    ]


def _judge(question: Question, better: Sequence[float], worse: Sequence[float]) -> Judged:
    """Answer a question, given the p-values of all others in both directions."""
    differences = tuple(_difference(question, control, better, worse) for control in question.tests)
    tests = question.tests
    is_decidable = len(tests) == question.n_controls and all(
        test.smallest_p <= ALPHA / 2 for test in tests.values()
    )
    word = _word(differences, question, is_decidable)
    return Judged(word, differences, _deciding(word, tests))


def _deciding(word: Verdict, tests: Mapping[str, SequentialTest]) -> str | None:
    if word in ("hurts", "worse than plain"):
        return max(tests, key=lambda c: (tests[c].p_below(), tests[c].mean))
    return max(tests, key=lambda c: (tests[c].p_above(), -tests[c].mean), default=None)


def _difference(
    question: Question, control: str, better: Sequence[float], worse: Sequence[float]
) -> Difference:
    test = question.tests[control]
    p_better, p_worse = test.p_above(), question.p_worse_than(control)
    low, high = test.bounds(ALPHA / 2)
    if p_better > threshold(better, ALPHA / 2):
        low = min(low, 0.0)
    if p_worse > threshold(worse, ALPHA / 2):
        high = max(high, 0.0)
    p_value = min(1.0, 2 * adjusted(p_better, better), 2 * adjusted(p_worse, worse))
    return Difference(control, test.mean, (_finite(low), _finite(high)), p_value, test.n_seeds)


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _word(differences: Sequence[Difference], question: Question, is_decidable: bool) -> Verdict:
    is_better = [low is not None and low > 0 for low, _ in (d.interval for d in differences)]
    is_worse = [high is not None and high < 0 for _, high in (d.interval for d in differences)]
    is_complete = len(differences) == question.n_controls > 0
    if question.collapsed:
        return "collapsed"
    if is_complete and all(is_better):
        return "helps" if question.about_xstar else "better than plain"
    if is_complete and all(is_worse):
        return "hurts" if question.about_xstar else "worse than plain"
    if any(is_worse):
        return "worse than a control"
    if is_complete and is_better[0]:
        return "better than plain only"
    if is_complete and all(_is_within(d.interval, question.margin) for d in differences):
        return "practically the same"
    return "no detectable difference" if is_decidable else "underpowered"


def _is_within(interval: tuple[float | None, float | None], margin: float) -> bool:
    low, high = interval
    return low is not None and high is not None and -margin < low and high < margin


def seeds_needed(n_questions: int, share: float) -> int:
    """Return the smallest number of seeds with which any single question could get a verdict.

    Args:
        n_questions: Number of arms with x* times number of sizes.
        share: Share of the allowed error that the look may spend.
    """
    enough = (n for n in range(1, 64) if n_questions * smallest_p(n) <= share * ALPHA / 2)
    return next(enough, 64)
