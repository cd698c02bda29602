"""Two comparisons side by side, for the terminal: fits 80 columns and does not need colour."""

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lupi.report.numbers import difference, difference_interval, p_value, score, unit
from lupi.verdict.side_by_side import Pair, SideBySide


def render_pair(found: SideBySide) -> Iterator[RenderableType]:
    """Yield the printable parts of two comparisons side by side."""
    yield Text(f"first: {found.first}\nsecond: {found.second}\n")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold")
    for head in ("n", "first", "second", "gain", "95 % interval", "p", "seeds"):
        table.add_column(head, justify="right", no_wrap=True)
    for pair in found.pairs:
        table.add_row(Text(pair.arm), *_entries(pair, found.metric))
    yield table
    better = "higher" if found.higher_is_better else "lower"
    yield Text(f"\n{unit(found.metric)} on test data ({better} is better): means over all seeds.")
    if found.data_differ:
        yield Text(f"The data differ ({found.data_differ}), so seeds draw different rows:")
        yield Text("differences are neither paired nor tested.")
    else:
        yield Text(
            "Gain: second minus first (positive is better), paired over the common seeds;\n"
            "p from a sign-flip test, corrected for the sizes of an arm."
        )
    for where, arms in (("first", found.only_first), ("second", found.only_second)):
        if arms:
            yield Text(f"only in the {where}: {', '.join(arms)}")
    for warning in found.warnings:
        yield Text(f"! {warning}")


def _entries(pair: Pair, metric: str) -> list[str]:
    return [
        str(pair.size),
        score(pair.first, metric),
        score(pair.second, metric),
        difference(pair.difference.mean if pair.difference else None, metric),
        difference_interval(pair.difference, metric) if pair.difference else "",
        p_value(pair.difference.p_value if pair.difference else None),
        str(pair.n_pairs),
    ]
