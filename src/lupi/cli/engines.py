"""Choose the engine from the options of a command."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lupi.errors import LupiError

if TYPE_CHECKING:
    from lupi.comparison.jobs import Engine

PANEL = "Engine: where runs are executed"


EngineName = Literal["local", "ray", "slurm"]
Name = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        rich_help_panel=PANEL,
        help="This machine, a Ray cluster or Slurm. Results do not depend on the engine.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="Address of the Ray cluster: HOST:PORT, or `auto` on one of its machines. By default "
        "`local`: Ray is started on this machine.",
    ),
]
Cpus = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=PANEL, help="Cores per run. By default train.n_threads."),
]
Gpus = Annotated[float, typer.Option(min=0, rich_help_panel=PANEL, help="GPUs per run.")]
Memory = Annotated[
    float | None,
    typer.Option(min=0.001, metavar="GB", rich_help_panel=PANEL, help="Memory per run."),
]
Minutes = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=PANEL,
        help="Time limit of a Slurm job, by default 60; longer runs are requeued.",
    ),
]
Sbatch = Annotated[
    list[str] | None,
    typer.Option(
        "--sbatch",
        metavar="KEY=VALUE",
        rich_help_panel=PANEL,
        help="Option for sbatch, such as `partition=gpu`. May be given several times.",
    ),
]


def make_engine(
    name: EngineName,
    workers: int | None,
    address: str | None,
    cpus: int | None,
    gpus: float,
    memory: float | None,
    minutes: int | None,
    sbatch: list[str] | None,
) -> "Engine":
    """Return the selected engine; raise an error for options of another engine."""
    clusters = ("ray", "slurm")
    for option, value, engines in (
        ("address", address, clusters[:1]),
        ("cpus", cpus, clusters),
        ("gpus", gpus, clusters),
        ("memory", memory, clusters),
        ("minutes", minutes, clusters[1:]),
        ("sbatch", sbatch, clusters[1:]),
    ):
        if value and name not in engines:
            raise LupiError(f"--{option} is for --engine {' or '.join(engines)}, not {name}")
    if name == "local":
        from lupi.comparison.engines.local import local_engine

        return local_engine(workers)
    from lupi.comparison.jobs import Resources

    per_run = Resources(cpus, gpus, memory)
    if name == "ray":
        from lupi.comparison.engines.ray import ray_engine

        return ray_engine(address or "local", per_run, workers)
    from lupi.comparison.engines.slurm import slurm_engine

    return slurm_engine(per_run, minutes, _pairs(sbatch or []), workers)


def _pairs(given: list[str]) -> dict[str, str]:
    for text in given:
        if "=" not in text.strip("="):
            raise LupiError(f"--sbatch takes KEY=VALUE, such as partition=gpu; got {text!r}")
    return dict(text.split("=", 1) for text in given)
