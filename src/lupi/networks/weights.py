"""Initial weights, and networks without them, to be filled from a file."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


def he_init(module: nn.Module) -> None:
    """Initialise a layer after He et al. 2015; for use with `apply`."""
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


_DRAWS: set[Callable[..., Any]] = {
    Tensor.normal_,
    Tensor.uniform_,
    nn.init.normal_,
    nn.init.uniform_,
}


class _NoDraws(TorchFunctionMode):
    """Skip random initialisation, which on the meta device imports more than a second of torch."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else options["tensor"]
        return func(*args, **options)


@contextlib.contextmanager
def uninitialised() -> Iterator[None]:
    """Build networks inside the block without allocating or initialising their weights."""
    with torch.device("meta"), _NoDraws():
        yield
