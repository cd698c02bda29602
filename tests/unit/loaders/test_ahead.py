"""Reading and decoding ahead: order, errors where they belong, never too far."""

import threading
from collections.abc import Generator

import pytest

from lupi.loaders.images.shards.stream import map_ahead


def numbers(read: list[int], n: int = 100, bad: int = -1) -> Generator[int, None, None]:
    for i in range(n):
        if i == bad:
            raise ValueError(f"{i} can't be read")
        read.append(i)
        yield i


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(map_ahead(lambda i: i * i, numbers([]), 4, 8)) == [i * i for i in range(100)]


def test_no_more_than_allowed_are_read_before_their_time() -> None:
    read: list[int] = []
    results = map_ahead(lambda i: i, numbers(read), 2, n_ahead=5)
    for n, _ in enumerate(results, start=1):
        assert len(read) <= n + 5 + 1  # one more waits for a place


@pytest.mark.parametrize("where", ["reading", "decoding"])
def test_errors_come_out_where_the_result_would_have(where: str) -> None:
    def decode(i: int) -> int:
        if where == "decoding" and i == 7:
            raise ValueError("7 can't be decoded")
        return i

    results = map_ahead(decode, numbers([], bad=7 if where == "reading" else -1), 2, 8)
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="7 can't be"):
        next(results)


def test_closing_it_closes_the_reader_and_ends_the_threads() -> None:
    closed = threading.Event()
    before = threading.active_count()

    def endless() -> Generator[int, None, None]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    results = map_ahead(lambda i: i, endless(), 2, 4)
    next(results)
    assert threading.active_count() > before
    del results
    assert closed.is_set()
    assert threading.active_count() == before
