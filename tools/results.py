"""Judge the published comparisons again, and write their numbers into README.md and the docs.

    python tools/results.py           rewrite the pages
    python tools/results.py --check   name the pages that would change, and exit with 1

The scores are in docs/results/NAME.csv, what else a verdict needs in docs/results/comparisons.yaml;
tools/add_result.py adds both from a comparison's records.
A page holds two kinds of numbers. Tables and headlines stand between

    <!-- scores reviews -->  and  <!-- end -->

and are written by the function `show_scores` below. Sentences with numbers are in
docs/results/claims.yaml, with an expression for each number.
"""

import argparse
import csv
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import lupi
from lupi.design import Design, Looks
from lupi.records import Arm, ComparisonRecord, Metric, PlannedRun, RunRecord
from lupi.report.tables import markdown
from lupi.verdict import units as numbers
from lupi.verdict.results import ArmSummary, Cell, Difference, Summary
from lupi.verdict.summary import summarise

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
BLOCK = re.compile(r"(<!-- ([a-z-]+) ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


# Scores and verdicts


@cache
def facts() -> dict[str, dict[str, Any]]:
    """Return what is known about each comparison beside its scores."""
    content: dict[str, dict[str, Any]] = yaml.safe_load(
        (RESULTS / "comparisons.yaml").read_text(encoding="utf-8")
    )
    return content


@cache
def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def summary(name: str) -> Summary:
    """Judge a comparison by the present rule."""
    about = facts()[name]
    metric = Metric(about["metric"], about.get("higher_is_better", True))
    arms = [
        Arm(arm, **{key: value for key, value in given.items() if key != "about"})
        for arm, given in about["arms"].items()
    ]
    runs: list[RunRecord] = []
    n_collapsed = {
        (row["arm"], row["size"]): int(row["score"])
        for row in rows(name)
        if row["metric"] == "n_collapsed"
    }
    for row in rows(name):
        if row["metric"] != metric.name:
            continue
        key = row["arm"], row["size"]
        collapsed = n_collapsed.get(key, 0) > 0  # which of them is not known, nor needed
        n_collapsed[key] = n_collapsed.get(key, 0) - 1
        plan = PlannedRun(f"run{len(runs)}", row["arm"], int(row["size"]), int(row["seed"]))
        result = {
            "status": "finished",
            "metrics": {"test": {metric.name: float(row["score"])}},
            "trivial": {metric.name: about["trivial"]},
            "collapsed": collapsed,
        }
        runs.append(RunRecord(plan, RESULTS, result))
    settings = {"name": about["comparison"], "questions": about.get("questions", [])}
    design, looks = Design(**about["design"]), Looks(tuple(about["looks"]))
    return summarise(
        ComparisonRecord(RESULTS, settings, arms, metric, runs, design=design, looks=looks)
    )


def arm_of(name: str, arm: str) -> ArmSummary:
    """Return an arm of a comparison."""
    return next(found for found in summary(name).arms if found.name == arm)


def cell_of(name: str, arm: str, size: int) -> Cell:
    """Return an arm at a size."""
    return next(cell for cell in arm_of(name, arm).cells if cell.size == size)


def difference_of(name: str, arm: str, size: int, other: str | None = None) -> Difference:
    """Return the difference from another arm, by default from the deciding control."""
    cell = cell_of(name, arm, size)
    other = other or cell.deciding_control
    return next(found for found in cell.differences if found.other == other)


# Tables: one function for each kind of block


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned to the right."""
    ruler = ["---", *["---:"] * (len(heads) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, ruler, *lines))


def show_scores(name: str) -> str:
    """All arms by size, with a mark for the verdict, and what the marks mean."""
    return markdown(summary(name)).split("\n\n", 1)[1]


def show_headline(name: str) -> str:
    """The sentence that sums the comparison up."""
    return f"**{markdown(summary(name)).split(chr(10) * 2)[0]}**\n"


def show_gains(name: str, size: str = "") -> str:
    """All arms at one size: score, difference from the plain model, verdict."""
    judged = summary(name)
    n = int(size) if size else judged.sizes[-1]
    about = {arm: given.get("about", "") for arm, given in facts()[name]["arms"].items()}
    lines = []
    for arm in judged.arms:
        cell = cell_of(name, arm.name, n)
        gain, verdict = "", ""
        if arm.name != judged.reference:
            gain = with_interval(difference_of(name, arm.name, n, judged.reference), judged.metric)
            verdict = cell.verdict
        described = [about[arm.name]] if any(about.values()) else []
        lines.append([arm.name, *described, numbers.score(cell.mean, judged.metric), gain, verdict])
    described = ["description"] if any(about.values()) else []
    heads = ["arm", *described, numbers.unit(judged.metric), f"against {judged.reference}"]
    return table([*heads, "verdict"], lines)


def show_closest(name: str, arm: str) -> str:
    """One arm by size: the plain score, its own, the gain over the deciding control, labels."""
    judged = summary(name)
    lines = []
    for cell in arm_of(name, arm).cells:
        if cell.mean is None:
            continue
        closest = difference_of(name, arm, cell.size)
        plain = cell_of(name, judged.reference, cell.size)
        saved = numbers.saving(cell.label_saving)
        spread = numbers.saving_interval(cell.label_saving)
        lines.append(
            [
                f"{cell.size:,}",
                numbers.score(plain.mean, judged.metric),
                numbers.score(cell.mean, judged.metric),
                with_interval(closest, judged.metric),
                closest.other,
                f"{saved} ({spread})" if spread else saved,
                cell.verdict,
            ]
        )
    heads = ["n", judged.reference, arm, "gain over the closest control (95 % interval)"]
    return table([*heads, "closest control", "labels saved", "verdict"], lines)


def show_fractions(name: str, family: str) -> str:
    """Arms that differ in the fraction of rows with x*, by size."""
    judged = summary(name)
    arms = [arm for arm in judged.arms if arm.family == family]
    lines = []
    for size in judged.sizes:
        plain = numbers.score(cell_of(name, judged.reference, size).mean, judged.metric)
        lines.append([f"none (n = {size})", plain, "", "", "", ""])
        for arm in arms:
            cell = cell_of(name, arm.name, size)
            against = difference_of(name, arm.name, size, judged.reference)
            lines.append(
                [
                    f"{100 * arm.xstar_frac:g} % (n = {size})",
                    numbers.score(cell.mean, judged.metric),
                    with_interval(against, judged.metric),
                    with_interval(difference_of(name, arm.name, size), judged.metric),
                    cell.deciding_control or "",
                    cell.verdict,
                ]
            )
    heads = ["rows with x\\*", numbers.unit(judged.metric), f"against {judged.reference}"]
    return table([*heads, "against the deciding control", "which is", "verdict"], lines)


def show_nothing(*names: str) -> str:
    """For each comparison the best arm with x* at the largest size, and what an oracle gains."""
    lines = []
    for name in names:
        judged = summary(name)
        size = judged.sizes[-1]
        tested = [arm for arm in judged.arms if arm.uses_xstar and arm.control == "real"]
        oracle = [arm for arm in tested if arm.sees_xstar_at_test]
        cells = [(arm.name, cell_of(name, arm.name, size)) for arm in tested if arm not in oracle]
        sign = 1 if judged.higher_is_better else -1
        best, cell = max(cells, key=lambda found: sign * (found[1].mean or 0))
        against = difference_of(name, best, size)
        gains = [difference_of(name, arm.name, size, judged.reference) for arm in oracle]
        lines.append(
            [
                f"{facts()[name]['about']}, {numbers.unit(judged.metric)}",
                f"{size:,}",
                numbers.score(cell_of(name, judged.reference, size).mean, judged.metric),
                f"{best}: {numbers.score(cell.mean, judged.metric)}",
                with_interval(against, judged.metric),
                against.other,
                cell.verdict,
                "".join(with_interval(found, judged.metric) for found in gains),
            ]
        )
    heads = ["data", "n", "no-xstar", "best with x\\*", "gain over the closest control"]
    return table([*heads, "closest control", "verdict", "oracle against no-xstar"], lines)


def show_other(name: str, metric: str) -> str:
    """All arms by size, with a score that the verdict does not use."""
    judged = summary(name)
    heads = ["arm", *(f"n = {size}" for size in judged.sizes)]
    return table(
        heads,
        [
            [arm.name, *(average(name, arm.name, size, metric) for size in judged.sizes)]
            for arm in judged.arms
        ],
    )


def show_paper(file: str) -> str:
    """Every number of the CVPR 2018 paper, beside ours where one was measured."""
    lines = []
    for row in csv.DictReader((ROOT / file).read_text(encoding="utf-8").splitlines()):
        ours, verdict = "", ""
        if row["comparison"]:
            where = row["comparison"], row["our_arm"], int(row["size"])
            ours, verdict = mean(*where), cell_of(*where).verdict
            ours = f"{ours} (n = {where[2]:,})"
        arm = f"`{row['arm']}`" if row["arm"] else ""
        paper = [row["single"], row["multi"]]
        lines.append([row["part"], row["model"], arm, *paper, ours, verdict, row["hours"]])
    heads = ["in the paper", "model", "arm", "paper: top-1 / top-5", "multi-crop", "ours, top-1"]
    return table([*heads, "verdict", "A100 hours"], lines)


def with_interval(found: Difference, metric: str) -> str:
    """Return a difference and its interval."""
    interval = numbers.interval(found.interval, metric)
    return f"{numbers.difference(found.mean, metric)} ({interval})"


SHOW: dict[str, Callable[..., str]] = {
    key.removeprefix("show_"): value for key, value in globals().items() if key.startswith("show_")
}


# Numbers in sentences


def mean(name: str, arm: str, size: int) -> str:
    """Return a mean score."""
    return numbers.score(cell_of(name, arm, size).mean, summary(name).metric)


def gain(name: str, arm: str, size: int, other: str | None = None) -> str:
    """Return a difference without its sign."""
    found = difference_of(name, arm, size, other)
    return numbers.difference(found.mean, summary(name).metric).lstrip("+-")


def signed(name: str, arm: str, size: int, other: str | None = None) -> str:
    """Return a difference with its sign."""
    return numbers.difference(difference_of(name, arm, size, other).mean, summary(name).metric)


def interval(name: str, arm: str, size: int, other: str | None = None) -> str:
    """Return the interval of a difference."""
    return numbers.interval(difference_of(name, arm, size, other).interval, summary(name).metric)


def p(name: str, arm: str, size: int) -> str:
    """Return the p-value of a verdict."""
    value = cell_of(name, arm, size).p_value
    return "1" if value == 1 else numbers.p_value(value)


def saved(name: str, arm: str, size: int, closest: bool = False) -> str:
    """Return how many times as many labels another arm needs."""
    cell = cell_of(name, arm, size)
    saving = cell.label_saving_control if closest else cell.label_saving
    return numbers.saving(saving).rstrip("×")


def saved_interval(name: str, arm: str, size: int, closest: bool = False) -> str:
    """Return the interval of that factor."""
    cell = cell_of(name, arm, size)
    return numbers.saving_interval(cell.label_saving_control if closest else cell.label_saving)


def between(name: str, arm: str, size: int, other: str) -> tuple[str, str, str]:
    """Judge two arms by `lupi.judge` alone: the difference, its interval and the p-value."""
    runs = [
        (one, size, which, score)
        for one in (other, arm)
        for which, score in cell_of(name, one, size).scores.items()
    ]
    columns = dict(zip(("arm", "size", "seed", "score"), zip(*runs, strict=True), strict=True))
    metric, design = summary(name).metric, Design(**facts()[name]["design"])
    judged = lupi.judge(columns, method=arm, controls=[other], metric=metric, design=design)
    cell = next(found for found in judged.arms if found.name == arm).cells[0]
    (found,) = cell.differences
    return (
        numbers.difference(found.mean, metric).lstrip("+-"),
        numbers.interval(found.interval, metric),
        numbers.p_value(cell.p_value),
    )


def smallest(name: str) -> str:
    """Return the smallest gain of an arm over its own shuffled control, at any size."""
    return numbers.score(min(_over_shuffled(name)), summary(name).metric)


def largest(name: str) -> str:
    """Return the largest one."""
    return numbers.score(max(_over_shuffled(name)), summary(name).metric)


def _over_shuffled(name: str) -> list[float]:
    return [
        found.mean
        for arm in summary(name).arms
        for cell in arm.cells
        for found in cell.differences
        if found.other == f"{arm.name}/shuffled"
    ]


def trivial(name: str) -> str:
    """Return the score of a predictor that ignores x."""
    return numbers.score(summary(name).trivial, summary(name).metric)


def n_ahead(name: str, arm: str, size: int, other: str) -> int:
    """Return on how many seeds an arm is ahead of another."""
    sign = 1 if summary(name).higher_is_better else -1
    ours, theirs = cell_of(name, arm, size).scores, cell_of(name, other, size).scores
    return sum(sign * (ours[one] - theirs[one]) > 0 for one in ours)


def average(name: str, arm: str, size: int, metric: str) -> str:
    """Return the mean over seeds of a score that the verdict does not use."""
    key = (arm, str(size), metric)
    found = [row for row in rows(name) if (row["arm"], row["size"], row["metric"]) == key]
    return numbers.score(float(found[0]["score"]) if found else None, metric)


NAMES: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(mean, gain, signed, interval, p, saved, saved_interval, between, n_ahead),
        *(smallest, largest, trivial),
    )
}


@cache
def claims() -> dict[str, dict[str, list[Any]]]:
    """Return what the sentences of each page claim; the head of the file describes it."""
    content: dict[str, dict[str, list[Any]]] = yaml.safe_load(
        (RESULTS / "claims.yaml").read_text(encoding="utf-8")
    )
    return content


def pattern(claim: str) -> re.Pattern[str]:
    """Return what a sentence looks like with any numbers, broken into any lines."""
    parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in re.split(r"\{.*?\}", claim)]
    number = r"[-+]?[\d.]*\d"
    return re.compile(rf"({number}(?:\s+to\s+{number}|\s+or\s+(?:more|less))?)".join(parts))


# Pages


def pages() -> list[Path]:
    """Return the pages with numbers of published comparisons."""
    return [ROOT / "README.md", ROOT / "docs/paper.md", *sorted(RESULTS.glob("*.md"))]


def rewritten(page: Path) -> str:
    """Return a page with its blocks and sentences computed again."""
    text = BLOCK.sub(
        lambda found: f"{found[1]}{SHOW[found[2]](*found[3].split())}{found[4]}",
        page.read_text(encoding="utf-8"),
    )
    for claim in _of_page(page).get("computed", []):
        text = _replace_numbers(text, claim, page)
    return text


def _replace_numbers(text: str, claim: str, page: Path) -> str:
    """Write the numbers of a sentence into its place, and leave its line breaks alone."""
    found = pattern(claim).findall(text)
    if len(found) != 1:
        sys.exit(f"{page.name}: {len(found)} places with this sentence, expected one: {claim}")
    values = [str(eval(code, {**NAMES})) for code in re.findall(r"\{(.*?)\}", claim)]

    def put(match: re.Match[str]) -> str:
        whole, at = match[0], match.start()
        for i in range(len(values), 0, -1):
            if " ".join(match[i].split()) != values[i - 1]:
                whole = whole[: match.start(i) - at] + values[i - 1] + whole[match.end(i) - at :]
        return whole

    return pattern(claim).sub(put, text)


def wrong_verdicts(page: Path) -> list[str]:
    """Return what the sentences of a page rest on and the rule does not say."""
    return [
        f"{name}, {arm} at n = {size}: {cell_of(name, arm, size).verdict}, not {expected}"
        for name, arm, sizes, expected in _of_page(page).get("verdicts", [])
        for size in sizes
        if cell_of(name, arm, size).verdict != expected
    ]


def unexplained_numbers(page: Path) -> list[str]:
    """Return the decimal numbers of a page that are neither computed nor named as measured."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    about = _of_page(page)
    for claim in about.get("computed", []):
        text = pattern(claim).sub("", text)
    for phrase in about.get("elsewhere", []):
        if re.match("#+ ", phrase):
            text = re.sub(rf"^{re.escape(phrase)}\n.*?(?=^#|\Z)", "", text, flags=re.M | re.S)
        else:
            text = re.sub(r"\s+".join(map(re.escape, phrase.split(" "))), "", text)
    return re.findall(r"\d+\.\d+", text)


def _of_page(page: Path) -> dict[str, list[Any]]:
    return claims().get(str(page.relative_to(ROOT)), {})


def main() -> None:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    changed = [page for page in pages() if rewritten(page) != page.read_text(encoding="utf-8")]
    for page in changed:
        print(f"{'differs' if check else 'rewritten'}: {page.relative_to(ROOT)}")
        if not check:
            page.write_text(rewritten(page), encoding="utf-8")
    wrong = [f"{page.name}: {text}" for page in pages() for text in wrong_verdicts(page)]
    for text in wrong:
        print(f"write this sentence again: {text}")
    sys.exit(1 if wrong or (check and changed) else 0)


if __name__ == "__main__":
    main()
