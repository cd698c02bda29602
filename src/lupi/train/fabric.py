"""Several processes that torchrun started, on one or more nodes, by Lightning Fabric."""

import logging
import os
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor, distributed, nn

from lupi.errors import LupiError
from lupi.train.optimizers import Optimizer
from lupi.train.processes import Processes, check_bfloat16

T = TypeVar("T")


class FabricProcesses(Processes):
    """The processes of one torchrun, which share each batch."""

    def __init__(self, precision: Any, device: str = "auto") -> None:
        if precision == "bf16-mixed":
            check_bfloat16()
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # no banners
        n, n_here = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
        try:
            self._fabric = Fabric(
                accelerator=device.partition(":")[0],  # each process has its own GPU
                devices=n_here,
                num_nodes=n // n_here,
                # unused, such as a helper's in a batch without any x*
                strategy=DDPStrategy(find_unused_parameters=True),
                precision=precision,
            )
        except MisconfigurationException as error:  # such as more processes than GPUs
            raise LupiError(f"torchrun started {n_here} processes on this node: {error}") from None
        self._fabric.launch()
        self.count, self.rank = self._fabric.world_size, self._fabric.global_rank
        self.device = self._fabric.device

    def place(self, module: nn.Module) -> None:
        """Move weights to the device, in the run's precision."""
        self._fabric.strategy.precision.convert_module(self._fabric.to_device(module))

    def as_input(self, values: T) -> T:
        """Return data on the device and in the precision of training."""
        on_device = self._fabric.to_device(values)
        converted: T = self._fabric.strategy.precision.convert_input(on_device)
        return converted

    def wrap(self, module: nn.Module) -> Any:
        """Return a module whose gradients all processes share."""
        return self._fabric.setup_module(module)

    def backward(self, loss: Tensor) -> None:
        """Compute gradients. They add up, where data-parallel training would take their mean."""
        self._fabric.backward(loss * self.count)

    def no_sync(self, module: Any) -> AbstractContextManager[Any]:
        """Do not exchange gradients between processes inside the block."""
        return self._fabric.no_backward_sync(module)

    def clip(self, module: Any, optimizer: Optimizer, max_norm: float) -> None:
        """Limit the norm of the gradients."""
        self._fabric.clip_gradients(module, optimizer, max_norm=max_norm)  # type: ignore[arg-type]

    def share_buffers(self, module: nn.Module) -> None:
        """Copy what is not a weight, such as the statistics of batch norms, from the first."""
        for buffer in module.buffers():
            distributed.broadcast(buffer, 0)

    def broadcast(self, value: T) -> T:
        """Return the value of the first process."""
        return self._fabric.broadcast(value)

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in the order of their ranks."""
        values: list[T | None] = [None] * self.count
        distributed.all_gather_object(values, value)
        return [value for value in values if value is not None]
