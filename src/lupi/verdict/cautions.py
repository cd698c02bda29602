"""Warnings that a reader should know before trusting a verdict."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from lupi.design import Design
from lupi.records import Arm, ComparisonRecord
from lupi.verdict.labels import WIDE_SPACING
from lupi.verdict.results import ArmSummary, Cell, Tuning
from lupi.verdict.roles import is_candidate, own_controls
from lupi.verdict.rule import Rule, judge_questions
from lupi.verdict.scores import Scores
from lupi.verdict.units import score
from lupi.verdict.words import at_sizes

LITTLE = 1 / 4
"""Share of the plain arm's gain over a predictor that ignores x below which an arm has failed."""
MIN_SEEDS_BELOW = 4
"""Number of seeds that have to agree that an arm is below the plain one."""
MUCH_OVERLAP = 1 / 3
"""Share of common rows between two seeds above which a warning is given."""


def cautions(
    record: ComparisonRecord,
    scores: Scores,
    arms: Sequence[ArmSummary],
    rule: Rule,
    failed: Sequence[str],
) -> Iterator[str]:
    """Yield the warnings of a judged comparison, starting with those about the records."""
    yield from record.warnings
    yield from scores.warnings
    if missing := _counted(arms, lambda cell: cell.n_missing):
        yield (
            f"missing results ({len(record.runs)} runs planned): {missing}; "
            "arms are compared on their common seeds"
        )
    if failed:
        yield f"failed runs: {', '.join(failed)}; see failure.txt in their folders"
    if diverged := _counted(arms, lambda cell: cell.n_diverged):
        yield f"diverged runs (they count with their score): {diverged}"
    real = [arm for arm in arms if arm.control == "real"]
    if collapsed := _counted(real, lambda cell: cell.n_collapsed):
        yield f"collapsed runs (their noise no longer depends on x*): {collapsed}"
    yield from score_cautions(arms, scores)
    yield from _about_replicates(rule.design, scores.sizes)
    if unlearned := _listed(arms, lambda cell: _no_better_than_trivial(cell, scores)):
        trivial = score(scores.trivial, rule.metric)
        yield f"no better than a predictor that ignores x (score {trivial}): {unlearned}"
    plain = [arm for arm in arms if any(cell.verdict == "reference" for cell in arm.cells)]
    if below := _listed(plain, lambda cell: _clearly_below_trivial(cell, scores)):
        yield (
            f"clearly below a predictor that ignores x: {below}. Such students learn what is the "
            "other way round in test rows. Usual causes: pairs of similar rows with different "
            "classes that are divided between training and test (name their column as `groups`), "
            "test rows of another time or place, or classes that are so rare that most rows are "
            "of one class (then judge by another `metric`)"
        )
    yield from _harmed(arms, scores)
    yield from _beaten_networks(record.arms, scores, rule)
    if bare := [
        arm for arm in record.arms if is_candidate(arm) and not own_controls(arm, record.arms)
    ]:
        yield _without_control(bare)


def score_cautions(arms: Sequence[ArmSummary], scores: Scores) -> Iterator[str]:
    """Yield the warnings that need nothing but scores."""
    if same := _listed(arms, _is_repeated):
        yield (
            f"identical scores for all seeds: {same}; such seeds are not replicates, so "
            "differences between two such arms get no verdict"
        )
    reasons: dict[str, dict[str, list[int]]] = {}
    for arm in arms:
        for cell in arm.cells:
            if cell.reason is not None and cell.n_seeds:
                sizes = reasons.setdefault(f"{cell.verdict} ({cell.reason})", {})
                sizes.setdefault(arm.name, []).append(cell.size)
    for reason, found in reasons.items():
        yield f"{reason}: " + "; ".join(_at(name, sizes) for name, sizes in found.items())
    has_saving = any(
        saving is not None and saving.factor is not None
        for arm in arms
        for cell in arm.cells
        for saving in (cell.label_saving, cell.label_saving_control)
    )
    wide = [(a, b) for a, b in pairwise(scores.sizes) if a > 0 and b / a > WIDE_SPACING]
    if has_saving and wide:
        gaps = ", ".join(f"n = {a} and {b}" for a, b in wide)
        yield (
            f"label savings are interpolated over wide gaps (between {gaps}) and may be off by a "
            "third; add sizes in between"
        )


def tuning_cautions(tuning: Tuning | None) -> Iterator[str]:
    """Yield warnings about how the settings were chosen."""
    if tuning is None:
        yield (
            "untuned: differences may come from the choice of settings; add `tuning:` to the "
            "settings file, or describe there how the settings were chosen"
        )
        return
    counts = Counter(trial.arm for trial in tuning.candidates)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{arm} {n}" for arm, n in counts.items())
        yield f"unequal numbers of tuning candidates: {listed}"
    if tuning.shared:
        names = ", ".join(tuning.shared)
        unless = "" if tuning.note is None else " unless they are also the best for the control"
        yield (
            f"controls with the settings of the arm with real x*, which favours x*{unless}: {names}"
        )
    if not tuning.is_done:
        yield "tuning is unfinished: arms are shown with their initial settings"


def _no_better_than_trivial(cell: Cell, scores: Scores) -> bool:
    if cell.mean is None or scores.trivial is None:
        return False
    return scores.sign * cell.mean <= scores.sign * scores.trivial


def _clearly_below_trivial(cell: Cell, scores: Scores) -> bool:
    if cell.interval is None or scores.trivial is None:
        return False
    return max(scores.sign * end for end in cell.interval) < scores.sign * scores.trivial


def _harmed(arms: Sequence[ArmSummary], scores: Scores) -> Iterator[str]:
    """Yield warnings about arms with x* that learned almost nothing, or less than the plain arm."""
    reference = {
        cell.size: cell
        for arm in arms
        for cell in arm.cells
        if cell.verdict == "reference" and cell.mean is not None
    }
    plain = {size: cell.mean for size, cell in reference.items() if cell.mean is not None}

    def harmed(cell: Cell) -> bool:
        if cell.mean is None or scores.trivial is None or cell.size not in plain:
            return False
        gain = scores.sign * (cell.mean - scores.trivial)
        return 0 < gain < LITTLE * scores.sign * (plain[cell.size] - scores.trivial)

    real = [arm for arm in arms if arm.uses_xstar and arm.control == "real"]
    if found := _listed(real, harmed):
        yield (
            f"close to a predictor that ignores x although the plain arm is not: {found}; these "
            "settings do not fit the data: add `tuning:`, or leave the method out"
        )

    def below(cell: Cell) -> bool:
        if cell.size not in plain or harmed(cell):
            return False
        others = reference[cell.size].scores
        gains = [scores.sign * (s - others[k]) for k, s in cell.scores.items() if k in others]
        return len(gains) >= MIN_SEEDS_BELOW and max(gains) < 0

    if found := _listed(real, below):
        yield (
            f"below the plain arm on every seed: {found}; noise or a penalty by x* takes away what "
            "the student needs, as where the words of a text are vectors in context: try a smaller "
            "variance or weight, or guided-attention"
        )


def _is_repeated(cell: Cell) -> bool:
    return cell.n_seeds > 1 and len(set(cell.scores.values())) == 1


def _about_replicates(design: Design | None, sizes: Sequence[int]) -> Iterator[str]:
    """Yield warnings about rows that seeds share."""
    if design is None:
        yield (
            "it is unknown how training rows were drawn: seeds are treated as independent "
            "replicates"
        )
        return
    if whole := [size for size in sizes if design.is_whole_pool(size)]:
        yield (
            f"all seeds train on the same rows at {at_sizes(whole)}: verdicts there apply to "
            f"{design.scope(whole[0])}"
        )
    shared = {size: design.overlap(size) for size in sizes if not design.is_whole_pool(size)}
    if much := [size for size, overlap in shared.items() if overlap > MUCH_OVERLAP]:
        shares = ", ".join(f"{shared[size]:.0%}" for size in much)
        yield (
            f"training sets of two seeds share {shares} of their rows at {at_sizes(much)}: "
            "intervals there are widened accordingly"
        )


def _beaten_networks(arms: Sequence[Arm], scores: Scores, rule: Rule) -> Iterator[str]:
    """Yield warnings about classical models that are better than every network."""
    networks = [arm for arm in arms if not arm.classical and not arm.sees_xstar_at_test]
    classical = [arm for arm in arms if arm.classical]
    rivals = {arm.name: [n.name for n in networks] for arm in classical}
    judged = judge_questions(scores, classical, rivals, rule)
    for arm in classical:
        beaten = [
            size
            for (name, size), found in judged.items()
            if name == arm.name and found.verdict == "better than plain"
        ]
        if beaten:
            yield (
                f"{arm.name} is better than every network at {at_sizes(beaten)}: prefer it there, "
                "whether or not x* helps networks"
            )


def _without_control(arms: Sequence[Arm]) -> str:
    names = ", ".join(arm.name for arm in arms)
    has = "has" if len(arms) == 1 else "have"
    return (
        f"{names} {has} no control with replaced x*: a gain may come from the extra capacity; "
        "add `controls: [shuffled]`"
    )


def _counted(arms: Sequence[ArmSummary], number: Callable[[Cell], int]) -> str:
    """Return `het-dropout 2 at n = 75, 1 at n = 300; oracle 1 at n = 75`, or nothing."""
    counts = {
        arm.name: [f"{number(cell)} at n = {cell.size}" for cell in arm.cells if number(cell)]
        for arm in arms
    }
    return "; ".join(f"{name} {', '.join(found)}" for name, found in counts.items() if found)


def _listed(arms: Sequence[ArmSummary], applies: Callable[[Cell], bool]) -> str:
    """Return `het-dropout at n = 75, 300; oracle at n = 75`, or nothing."""
    sizes = {arm.name: [cell.size for cell in arm.cells if applies(cell)] for arm in arms}
    return "; ".join(_at(name, found) for name, found in sizes.items() if found)


def _at(name: str, sizes: Sequence[int]) -> str:
    return f"{name} at {at_sizes(sizes)}" if any(sizes) else name
