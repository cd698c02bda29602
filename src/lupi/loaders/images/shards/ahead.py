"""Read and decode in background threads; results keep the order of the items."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

Read = TypeVar("Read")
Done = TypeVar("Done")

POLL_SECONDS = 0.1
"""Seconds after which a waiting reader checks whether the iterator was closed."""


def map_ahead(
    function: Callable[[Read], Done],
    items: Generator[Read, Any, Any],
    n_threads: int,
    n_ahead: int,
) -> Iterator[Done]:
    """Yield function(item) for each item, in order, computing at most `n_ahead` in advance.

    An error in either is raised in place of the result. When the iterator is closed or deleted,
    the threads end and `items` is closed.
    """
    results: Queue[Future[Done] | None] = Queue(n_ahead)
    is_closed = Event()

    def put(result: Future[Done] | None) -> bool:
        while not is_closed.is_set():
            try:
                results.put(result, timeout=POLL_SECONDS)
                return True
            except Full:
                pass
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(pool.submit(function, item)):
                    break
        except BaseException as error:
            failed: Future[Done] = Future()
            failed.set_exception(error)
            put(failed)
        finally:
            items.close()
            put(None)

    with ThreadPoolExecutor(n_threads) as pool:
        reader = Thread(target=read, daemon=True)
        reader.start()
        try:
            while (result := results.get()) is not None:
                yield result.result()
        finally:
            is_closed.set()
            reader.join()
            pool.shutdown(cancel_futures=True)
