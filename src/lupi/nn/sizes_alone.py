"""Networks whose weights have sizes alone: to be filled from a file."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_DRAWS: set[Callable[..., Any]] = {
    Tensor.normal_,
    Tensor.uniform_,
    nn.init.normal_,
    nn.init.uniform_,
}


class _NoDraws(TorchFunctionMode):
    """Leave out what initialises weights: drawing none takes torch a second of imports."""

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
def sizes_alone() -> Iterator[None]:
    """Allocate nothing for networks that are built inside the block, whatever their settings."""
    with torch.device("meta"), _NoDraws():
        yield
