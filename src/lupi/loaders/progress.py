"""How far a long computation of a loader is, told to whoever listens."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

OnProgress = Callable[[int, int], None]
"""Called with the number of images or texts done so far, and of all."""
_listener: ContextVar[OnProgress | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def heard_by(listener: OnProgress) -> Iterator[None]:
    """Tell a listener about all progress inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(done: int, total: int) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total)
