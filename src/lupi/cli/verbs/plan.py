"""`lupi plan`: estimate the seeds and the time that a comparison needs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from lupi.cli import options
from lupi.cli.output import RUN_AGAIN, print_json, resumable
from lupi.interface.console import PlainConsole, print_message, silenced, stderr, time_text

if TYPE_CHECKING:
    from lupi.verdict.planning import SeedPlan


@options.takes_columns
def plan(
    settings: options.Source,
    columns: dict[str, Any],
    gain: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Gain to detect: points of accuracy, or the unit of the metric. By default two "
            "points (0.02 for r2 or auc); errors have no default.",
        ),
    ] = None,
    power: Annotated[
        float, typer.Option(min=1, max=99, help="Probability of detecting the gain, in percent.")
    ] = 80.0,
    pilot: Annotated[int, typer.Option(min=2, help="Number of pilot seeds.")] = 3,
    no_pilot: Annotated[
        bool, typer.Option("--no-pilot", help="Only say what would be trained; train nothing.")
    ] = False,
    size: Annotated[
        list[int] | None,
        typer.Option(help="Pilot size; may be given several times. By default all sizes."),
    ] = None,
    set_: options.Sets = None,
    allow: options.Allow = None,
    device: options.Device = None,
    out: options.Out = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate how many seeds a comparison needs, at which sizes, and how long it takes.

    Runs the first seeds of the comparison, which `lupi compare` then reuses, measures how much
    their scores vary (not which arm is ahead), and simulates the verdict on many comparisons with
    the same variation.

    Example: `lupi plan mine.yaml --gain 2 --pilot 3`

    Example: `lupi plan mine.yaml --no-pilot`

    Example: `lupi plan pupils.csv --target G3 --privileged G1,G2 --gain 0.02`
    """
    from lupi.interface.sources import settings_from

    raw = settings_from(settings, columns, options.changes(set_, device), out)
    with silenced(quiet), resumable():
        work = _plan_work(raw, pilot, size, out, workers)
        if not no_pilot:
            print_message(work.text)
            _plan(raw, work, gain, power, as_json)
        elif as_json:
            print_json({**asdict(work), "folder": str(work.folder)})
        else:
            PlainConsole(highlight=False).print(escape(work.text))


@dataclass(frozen=True, slots=True)
class Work:
    """What a pilot trains, before any data are read."""

    folder: Path
    sizes: Sequence[int]
    seeds: Sequence[int]
    n_workers: int
    n_runs: int
    """Runs of the pilot."""
    n_all: int
    """Runs of the comparison."""
    seconds: float | None
    """Time of the pilot, if earlier runs of every arm at every size tell."""
    tunes: bool

    @property
    def text(self) -> str:
        """What the pilot does, and how long."""
        known = "how long is shown after its first runs"
        if self.seconds is not None:
            known = time_text(self.seconds)
        return (
            f"a pilot {'tunes every arm, then ' if self.tunes else ''}trains {self.n_runs} of the "
            f"{self.n_all} runs of the comparison: {len(self.seeds)} seeds at n = "
            f"{', '.join(map(str, self.sizes))}, {self.n_workers} at a time, in {self.folder}; "
            f"{known}"
        )


def _plan_work(
    raw: dict[str, Any],
    n_seeds: int,
    sizes: list[int] | None,
    out: Path | None,
    workers: int | None,
) -> Work:
    from lupi.comparison.engines.local import n_cores
    from lupi.comparison.settings import ComparisonSettings
    from lupi.comparison.tuning import TuningSettings
    from lupi.errors import LupiError
    from lupi.records import default_folder, read_comparison
    from lupi.verdict.summary import mean_seconds

    settings = ComparisonSettings.parse(raw, "")
    if unknown := sorted(set(sizes or []) - set(settings.sizes)):
        known = ", ".join(map(str, settings.sizes))
        raise LupiError(f"--size: got {unknown[0]}; the sizes of the comparison are {known}")
    if len(settings.seeds) < 2:
        raise LupiError("seeds: a pilot needs at least two seeds; the comparison has one")
    folder, n_workers = out or default_folder(settings.name), workers or n_cores()
    chosen, seeds = sizes or settings.sizes, settings.seeds[:n_seeds]
    arms = settings.named_arms()
    cells = [(arm.name, size) for arm in arms for size in settings.sizes_of(arm.settings)]
    piloted = [cell for cell in cells if cell[1] in chosen]
    found = mean_seconds(read_comparison(folder)) if (folder / "comparison.json").exists() else {}
    is_known = all(cell in found for cell in piloted)
    seconds = len(seeds) * sum(found[cell] for cell in piloted) / n_workers if is_known else None
    return Work(
        folder,
        chosen,
        seeds,
        n_workers,
        len(piloted) * len(seeds),
        len(cells) * len(settings.seeds),
        seconds,
        isinstance(settings.tuning, TuningSettings),
    )


def _plan(raw: dict[str, Any], work: Work, gain: float | None, power: float, as_json: bool) -> None:
    from lupi.comparison.engines.local import local_engine
    from lupi.comparison.phases import phases
    from lupi.files import write_text
    from lupi.interface.running import execute_runs, prepare_plan
    from lupi.records import PlannedRun, read_comparison
    from lupi.report.figures.line_chart import draw_plan
    from lupi.verdict.planning import plan_seeds
    from lupi.verdict.units import gain_in_own_unit

    comparison = prepare_plan(raw)
    own_unit = gain_in_own_unit(gain, comparison.metric.name)
    folder, n_workers = work.folder, work.n_workers

    def in_pilot(run: PlannedRun) -> bool:
        return run.seed in work.seeds and run.size in work.sizes

    for phase in phases(comparison, folder):
        execute_runs(phase, folder, local_engine(n_workers), in_pilot)
    record = read_comparison(folder)
    missing = [run for run in record.runs if in_pilot(run.plan) and run.result is None]
    with stderr.status("simulating verdicts"):
        found = plan_seeds(record, own_unit, power / 100)
    write_text(folder / "plan.svg", draw_plan(found))
    if as_json:
        print_json({**asdict(found), "n_workers": n_workers})
    else:
        _print(found, n_workers)
        print_message(f"figure: {folder / 'plan.svg'}")
    if missing:
        print_message(RUN_AGAIN, f"{len(missing)} runs of the pilot have no result:", "red")
        raise typer.Exit(1)


def _print(found: "SeedPlan", n_workers: int) -> None:
    from lupi.verdict.planning import CONFIDENCE
    from lupi.verdict.roles import MEAN
    from lupi.verdict.units import difference, score, unit

    console = PlainConsole(highlight=False)
    gain = f"{difference(found.gain, found.metric)} ({escape(unit(found.metric))})"
    where = f"for {escape(', '.join(found.questions))}" if found.questions else "at each size"
    console.print(
        f"[bold]{escape(found.comparison)}[/]: [bold]{_seeds(found.seeds)} seeds[/] "
        f"({_ends(found.seeds_range)}) to detect {gain} {where} "
        f"with {100 * found.power:.0f} % power\n"
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold")
    for column in ("n", "spread", "seeds", "(range)", "alone", f"power, {found.n_seeds} seeds"):
        table.add_column(column, justify="right")
    for row in found.sizes:
        low, high = (f"{100 * end:.0f}" for end in row.power_range)
        table.add_row(
            escape(row.arm),
            "mean" if row.size == MEAN else str(row.size),
            score(row.spread, found.metric) + ("" if row.measured_at == row.size else "*"),
            _seeds(row.seeds),
            _ends(row.seeds_range),
            _seeds(row.seeds_alone),
            f"{100 * row.power:.0f} % ({low} to {high})",
        )
    console.print(table)
    fewest = min(row.n_pilot_seeds for row in found.sizes)
    console.print(
        "\n[dim]spread: standard deviation over seeds of a difference between two arms"
        + ("; *: from the nearest size of the pilot" if _borrows(found) else "")
        + "\nseeds: with all sizes tested together"
        + (", the planned questions first" if found.questions else "")
        + "; alone: with this size only\n"
        f"ranges: {100 * CONFIDENCE:.0f} % confidence, with the spread from {fewest} seeds[/]"
    )
    console.print(f"\nTime with {n_workers} parallel runs:")
    n_missing = found.n_runs - found.n_finished
    left = time_text(found.seconds_left / n_workers)
    console.print(f"  {n_missing} of {found.n_runs} runs left with {found.n_seeds} seeds: {left}")
    if found.seeds is not None and found.seeds > found.n_seeds:
        more = (found.seeds - found.n_seeds) * found.seconds_per_seed + found.seconds_left
        console.print(f"  with {found.seeds} seeds: {time_text(more / n_workers)}")
    print_message("the pilot's runs are saved: `lupi compare` with the same settings reuses them")


def _borrows(found: "SeedPlan") -> bool:
    return any(row.measured_at != row.size for row in found.sizes)


def _seeds(n: int | None) -> str:
    from lupi.verdict.planning import MOST_SEEDS

    return f"> {MOST_SEEDS}" if n is None else str(n)


def _ends(ends: tuple[int | None, int | None]) -> str:
    low, high = map(_seeds, ends)
    return low if low == high else f"{low} to {high}"
