"""Rows that are nearly equal and may be divided between training and test.

Texts are nearly copies if they share most of their sequences of four words, rows of a table if one
other row is far closer than the next ones: such are answers of one person, frames of one film,
edited versions of one review. A student that saw one of them knows the other.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.division import Codes, Division
from lupi.subsets import PARTS

N_TOGETHER = 4
"""Words of a sequence."""
MAX_WORDS = 400
"""Words of a text that are looked at."""
MAX_TEXTS = 20_000
MOST_FREQUENT = 20
"""A sequence in more texts than that says nothing about two of them."""
MIN_SHARED = 0.5
"""Share of the sequences of the shorter text."""
MAX_ROWS = 20_000
N_CHECKED = 500
MIN_ROWS = 20
MAX_FEATURES = 200
MUCH_CLOSER = 0.05
"""Distance of a near-copy, as a share of the distance of the fifth-nearest row."""
MIN_FEATURES = 4
"""In fewer dimensions, rows are that close by chance."""
MANY = 0.03
"""Share of near-copies that is worth a warning."""


class Pairs(NamedTuple):
    """Each row that was checked and has near-copies, beside one of them."""

    first: Codes
    second: Codes
    n_checked: int

    def take(self, some: NDArray[np.bool_]) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(self.first[some], self.second[some], self.n_checked)

    @property
    def n_rows(self) -> int:
        """Number of rows that have any near-copy."""
        return len(np.unique(self.first))


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), 0)


def equal_texts(texts: Sequence[NDArray[np.int32]]) -> Pairs:
    """Return the texts that have the same words as an earlier one."""
    place: dict[bytes, int] = {}
    first = np.array([place.setdefault(words.tobytes(), i) for i, words in enumerate(texts)])
    again = np.flatnonzero(first < np.arange(len(texts)))
    return Pairs(again, first[again], len(texts))


def near_texts(texts: Sequence[NDArray[np.int32]]) -> Pairs:
    """Return texts (numbers of words) that share most sequences with one that is not equal."""
    from scipy.sparse import csr_array

    rows, sequences = [], []
    for i_text, words in enumerate(texts[:MAX_TEXTS]):
        some = words[:MAX_WORDS].astype(np.uint64)
        if len(some) < 2 * N_TOGETHER:
            continue
        mixed = np.zeros(len(some) - N_TOGETHER + 1, dtype=np.uint64)
        for i in range(N_TOGETHER):
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + some[i : len(mixed) + i]
        own = np.unique(mixed)
        rows.append(np.full(len(own), i_text))
        sequences.append(own)
    if not rows:
        return NO_PAIRS
    row = np.concatenate(rows)
    _, column, count = np.unique(np.concatenate(sequences), return_inverse=True, return_counts=True)
    n_own = np.bincount(row, minlength=len(texts))
    kept = (count[column] > 1) & (count[column] <= MOST_FREQUENT)
    matrix = csr_array(
        (np.ones(kept.sum(), np.int32), (row[kept], column[kept])), (len(texts), len(count))
    )
    shared = (matrix @ matrix.T).tocoo()
    alike = shared.data / np.minimum(n_own[shared.row], n_own[shared.col])
    found = Pairs(shared.row.astype(np.int64), shared.col.astype(np.int64), len(texts))
    found = found.take((found.first != found.second) & (alike >= MIN_SHARED))
    pairs = zip(found.first, found.second, strict=True)
    return found.take(~np.array([np.array_equal(texts[i], texts[j]) for i, j in pairs], np.bool_))


def near_rows(x: NDArray[np.float32]) -> Pairs:
    """Return encoded rows (N, F) to which one other row is far closer than the next ones."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(x))[:MAX_ROWS])
    some = x[rows][:, np.sort(rng.permutation(x.shape[1])[:MAX_FEATURES])].astype(np.float64)
    some = some[:, some.std(0) > 0]
    if some.shape[1] < MIN_FEATURES or len(rows) < MIN_ROWS:
        return NO_PAIRS
    some /= some.std(0)
    squares, found = (some**2).sum(1), []
    checked = np.sort(rng.permutation(len(rows))[:N_CHECKED])
    for few in np.array_split(checked, -(-len(checked) // 100)):
        distance = squares[few, None] + squares - 2 * some[few] @ some.T
        distance[np.arange(len(few)), few] = np.inf
        nearest = distance.argmin(1)
        closest = np.sqrt(np.maximum(distance.min(1), 0))
        fifth = np.sqrt(np.maximum(np.partition(distance, 4, axis=1)[:, 4], 1e-12))
        # Closer than rounding errors: equal rows, which are another finding.
        near = (closest <= MUCH_CLOSER * fifth) & (closest > 1e-6 * np.sqrt(squares[few]))
        found.append((rows[few[near]], rows[nearest[near]]))
    first, second = (np.concatenate(part) for part in zip(*found, strict=True))
    return Pairs(first, second, len(checked))


def divided(pairs: Pairs, division: Division) -> Pairs:
    """Return the pairs that training and test rows may share: not those of one group."""
    part = np.empty(sum(map(len, division.given.values())), dtype=np.int64)
    for i, name in enumerate(PARTS):
        part[division.given.get(name, [])] = i
    apart = part[pairs.first] != part[pairs.second]
    if division.drawn:
        apart |= (part[pairs.first] == 0) & (part[pairs.second] == 0)
    if division.groups is not None:
        apart &= division.groups[pairs.first] != division.groups[pairs.second]
    return pairs.take(apart)


def near_copy_warnings(
    pairs: Pairs, division: Division, what: str, number: Sequence[int] | None = None
) -> Iterator[str]:
    """Yield a warning if many rows are nearly copies of others that may be in another part.

    Args:
        pairs: Rows that are nearly equal.
        division: How rows are divided.
        what: Of the rows: `texts` or `rows`.
        number: Number of each row in its file, if it is another than its place.
    """
    found = divided(pairs, division)
    if found.n_rows < max(2, MANY * pairs.n_checked):
        return
    rows = int(found.first[0]), int(found.second[0])
    one, other = ((row + 1 if number is None else number[row]) for row in rows)
    differ = float((division.labels[found.first] != division.labels[found.second]).mean())
    wrong = "scores may be too high"
    if differ >= 0.5:
        wrong = (
            f"{differ:.0%} of such pairs have different classes, so a student that recognises one "
            "is wrong about the other, and scores may be below chance"
        )
    yield (
        f"{found.n_rows:,} of {pairs.n_checked:,} {what} are nearly copies of others, such as rows "
        f"{one} and {other}, and training and test rows may share them: {wrong}. If they belong "
        "together (one person, one original), name the column that says so as `groups`"
    )
