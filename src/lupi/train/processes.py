"""The processes that train one run together: those that torchrun started, or this one alone."""

import logging
import os
from typing import TypeVar

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.exceptions import MisconfigurationException
from torch import distributed

from lupi.core import Method
from lupi.errors import LupiError
from lupi.train.precision import check_precision
from lupi.train.settings import TrainSettings

T = TypeVar("T")


def alone(settings: TrainSettings) -> Fabric:
    """Return what trains in this process, whoever else there is."""
    check_precision(settings.precision)
    return Fabric(accelerator="auto", devices=1, precision=settings.precision)


def together(settings: TrainSettings) -> Fabric:
    """Return what trains with all processes that torchrun started; alone where there is one."""
    n, n_here = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    if n == 1 or not distributed.is_torchelastic_launched():
        return alone(settings)
    check_precision(settings.precision)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # no banners
    try:
        fabric = Fabric(
            accelerator="auto",
            devices=n_here,
            num_nodes=n // n_here,
            # unused, such as a helper's in a batch without any x*
            strategy=DDPStrategy(find_unused_parameters=True),
            precision=settings.precision,
        )
    except MisconfigurationException as error:  # such as more processes than GPUs
        raise LupiError(f"torchrun started {n_here} processes on this node: {error}") from None
    fabric.launch()
    return fabric


def placed(fabric: Fabric, method: Method) -> Method:
    """Return a method on its device, in its precision."""
    fabric.strategy.precision.convert_module(fabric.to_device(method))
    return method


def as_input(fabric: Fabric, values: T) -> T:
    """Return data as a network sees it in training: on its device, in its precision."""
    converted: T = fabric.strategy.precision.convert_input(fabric.to_device(values))
    return converted


def total_over(fabric: Fabric, value: float) -> float:
    """Return the sum of a number over all processes."""
    return sum(gather(fabric, value))


def gather(fabric: Fabric, value: T) -> list[T]:
    """Return the values of all processes, in the order of their ranks."""
    if fabric.world_size == 1:
        return [value]
    values: list[T | None] = [None] * fabric.world_size
    distributed.all_gather_object(values, value)
    return [value for value in values if value is not None]
