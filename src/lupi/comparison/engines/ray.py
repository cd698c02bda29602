"""Run many runs on a Ray cluster: one task each, tried again where its machine is lost."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from lupi.comparison.engines.following import LostError, follow, run_on_node
from lupi.comparison.jobs import DEFAULT_RESOURCES, Engine, Event, Job, Resources
from lupi.errors import LupiError

N_RETRIES = 5
"""How often a run goes on elsewhere after its machine or process was lost."""
POLL_SECONDS = 1.0

Ref = Any
"""Ray's promise of an event."""


def ray_engine(
    address: str = "local", per_run: Resources = DEFAULT_RESOURCES, at_once: int | None = None
) -> Engine:
    """Return the engine of a Ray cluster.

    Args:
        address: of the cluster, such as 10.0.0.1:6379; `auto`: the one this machine belongs to;
            `local`: a new one on this machine.
        per_run: what the cluster reserves for each run.
        at_once: runs at a time, at most; None: as many as there is room for.
    """
    try:
        import ray
    except ImportError:
        raise LupiError("Ray is not installed: pip install 'lupi[ray]'") from None

    def execute(jobs: list[Job]) -> Generator[Event]:
        if jobs:
            with _connected(ray, address):
                yield from follow(_RayCluster(ray, per_run), jobs, at_once)

    room = "as many at a time as have room" if at_once is None else f"{at_once} at a time"
    return Engine(execute, f"{room} on Ray ({address})")


@contextlib.contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    if ray.is_initialized():  # connected by the caller, who also disconnects
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics
    # an existing cluster keeps its dashboard
    own = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise LupiError(f"--address {address}: no Ray cluster can be used there: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()


class _RayCluster:
    def __init__(self, ray: Any, per_run: Resources) -> None:
        self._ray, self._per_run, self._here = ray, per_run, Path.cwd()
        self._do = ray.remote(run_on_node)

    def submit(self, job: Job) -> Ref:
        memory = self._per_run.memory_gb
        options = {
            "num_cpus": self._per_run.cpus_for(job),
            "num_gpus": self._per_run.gpus,
            "memory": None if memory is None else int(memory * 1e9),
            "max_retries": N_RETRIES,
            "name": job.run_id,
        }
        return self._do.options(**options).remote(job, self._here)

    def wait(self, refs: list[Ref]) -> set[Ref]:
        ended, _ = self._ray.wait(refs, num_returns=len(refs), timeout=POLL_SECONDS)
        return set(ended)

    def outcome(self, ref: Ref) -> Event:
        try:
            event: Event = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:  # not of the run: `do` tells of those
            raise LupiError(str(error.cause)) from None
        except self._ray.exceptions.RayError as error:
            raise LostError(f"lost by Ray after {N_RETRIES} retries: {error}") from None
        return event

    def cancel(self, refs: list[Ref]) -> None:
        for ref in refs:
            self._ray.cancel(ref, force=True)
