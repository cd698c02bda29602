"""`lupi bounds`: the paper's bounds in numbers, and a simulation of its oracle."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from lupi.cli.options import Json, Sets
from lupi.cli.output import print_json
from lupi.interface.console import PlainConsole, print_message

if TYPE_CHECKING:
    from torch import nn

NetworkName = Literal["small-vgg", "vgg16-bn"]


def bounds(
    set_: Sets = None,
    network: Annotated[
        NetworkName | None,
        typer.Option(help="Use the paths and path norm of this network, newly initialised."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Measure the constants of a finished run."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Also simulate the oracle (a few seconds).")
    ] = False,
    out: Annotated[Path, typer.Option(help="Figure to write: .svg.")] = Path("runs/bounds.svg"),
    as_json: Json = False,
) -> None:
    """Print the bounds of Propositions 1 and 2 by n, and where they cross.

    Without x* the paper's bound decreases as n^-1/2; with an oracle that controls the variance of
    the output, as n^-1. `--set xi=0.01` sets a constant; the defaults are an illustration.
    docs/theory.md discusses what is proved.

    Example: `lupi bounds --network vgg16-bn --set delta=0.01`
    """
    from lupi.errors import LupiError
    from lupi.settings import override
    from lupi_paper.theory.bounds import where_below
    from lupi_paper.theory.curves import BoundSettings, make_bounds, to_json
    from lupi_paper.theory.drawings import (
        bounds_rows,
        crossover_words,
        simulation_table,
        write_bounds,
    )
    from lupi_paper.theory.simulation import simulate as run_simulation

    if network and run:
        raise LupiError("use either --network or --run, not both")
    if out.suffix != ".svg":
        raise LupiError(f"--out: got {out}, expected a name that ends in .svg")
    measured: dict[str, Any] = {}
    if network:
        measured = _of_network(network)
    elif run:
        measured = _of_run(run)
    given = override({}, set_ or [])
    constants = BoundSettings.parse({**measured, **given}, "")
    words = []
    if "xi" in measured and "xi" not in given and constants.xi > constants.delta:
        words.append(
            f"Measured xi = {constants.xi:.3g} is above delta = {constants.delta:g}: Proposition 2 "
            "does not apply to this network. Its curve is for an oracle with xi equal to delta."
        )
        constants = constants.model_copy(update={"xi": constants.delta})
    curves = make_bounds(constants)
    words.append(crossover_words(where_below(curves["Proposition 2"], curves["Proposition 1"])))
    ways = run_simulation(constants.simulation) if simulate else []
    write_bounds(out, constants, ways)
    if as_json:
        document = {**to_json(constants), "measured": measured}
        if simulate:
            document["simulation"] = [asdict(way) for way in ways]
        print_json(document)
    else:
        _print_table(["n", *curves], bounds_rows(curves, constants.sizes))
        for key, value in measured.items():
            print(f"measured {key} = {value:.4g}")
        for text in words:
            PlainConsole().print(Text(text))
        if simulate:
            print()
            _print_table(*simulation_table(constants.simulation.sizes, ways))
    print_message(f"image: {out}")


def _of_network(name: NetworkName) -> dict[str, Any]:
    import torch

    from lupi.networks.vgg import small_vgg, vgg16_bn

    torch.manual_seed(0)
    if name == "small-vgg":  # as for the embedded task
        return _of_paths(small_vgg(10, 24), (1, 24, 24), 10)
    return _of_paths(vgg16_bn(1000), (3, 224, 224), 1000)


def _of_run(folder: Path) -> dict[str, Any]:
    """Measure a trained student, on the validation rows of its run."""
    from lupi.train.evaluate import compute_outputs
    from lupi.train.finished import read_finished
    from lupi.train.run import splits_for
    from lupi_paper.theory.outputs import measure_outputs

    run = read_finished(folder)
    rows = splits_for(type(run.method), run.task, run.settings).val
    output, y, _ = compute_outputs(run.method, rows)
    scale = measure_outputs(output, y)._asdict()
    x = next(iter(rows.batches(2))).x
    return {**_of_paths(run.student, tuple(x.shape[1:]), output.shape[1]), **scale}


def _of_paths(net: "nn.Module", shape: tuple[int, ...], n_outputs: int) -> dict[str, Any]:
    from lupi_paper.theory.paths import log_path_count, log_path_norm

    return {
        "n_outputs": n_outputs,
        "log10_paths": log_path_count(net, shape) / math.log(10),
        "log10_path_norm": log_path_norm(net, shape) / math.log(10),
    }


def _print_table(head: Sequence[str], rows: list[list[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for i, column in enumerate(head):
        table.add_column(column, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    PlainConsole().print(table)
