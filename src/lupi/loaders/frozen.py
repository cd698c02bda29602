"""What a frozen network says about all rows: computed once, in a memory-mapped file.

The file is renamed when it is complete, so an existing one is valid.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from filelock import FileLock
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.files import write_whole

Some = TypeVar("Some")
OnProgress = Callable[[int, int], None]
"""Called with the number of batches done so far, and of all."""
_listener: ContextVar[OnProgress | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def heard_by(listener: OnProgress) -> Iterator[None]:
    """Tell a listener about all progress inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def encode_once(
    path: Path | None,
    n_rows: int,
    batches: Sequence[Some],
    encode: Callable[[Some], NDArray[np.float16]],
) -> NDArray[np.float16]:
    """Return the vectors or maps of all rows, (N, …), from the file if it is there.

    Args:
        path: The file; its name says what is in it. None: keep the values in memory.
        n_rows: N.
        batches: What to encode together, in the order of the rows.
        encode: Function from a batch to the values of its rows; called in several threads.
    """
    if path is None:
        return _encode(None, n_rows, batches, encode)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            write_whole(path, lambda file: _encode(file, n_rows, batches, encode))
    stored: NDArray[np.float16] = open_memmap(path, mode="r")
    return stored


def _encode(
    path: Path | None,
    n_rows: int,
    batches: Sequence[Some],
    encode: Callable[[Some], NDArray[np.float16]],
) -> NDArray[np.float16]:
    """Encode batches in threads of their own: those of torch wait busily for one another."""
    n_threads, start = torch.get_num_threads(), 0
    values: NDArray[np.float16] | None = None
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            for n_done, some in enumerate(pool.map(torch.inference_mode()(encode), batches), 1):
                if values is None:
                    shape = (n_rows, *some.shape[1:])
                    values = np.empty(shape, np.float16)
                    if path is not None:
                        values = open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
                values[start : start + len(some)] = some
                start += len(some)
                if listener := _listener.get():
                    listener(n_done, len(batches))
    finally:
        torch.set_num_threads(n_threads)
    assert values is not None
    if isinstance(values, np.memmap):
        values.flush()
    return values
