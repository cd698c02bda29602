"""Near-copies among images: the same scene twice, rescaled, recompressed or cropped by a pixel.

If one is trained on and the other tested, the score is too good. 256 bits of an image say in which
of 16 x 16 places brightness rises to the right (dHash: N. Krawetz, "Kind of Like That", 2013);
near-copies differ in few of them, and their thumbnails correlate.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

GRID = 16
"""Height and width of a thumbnail."""
MAX_BITS = 20
"""Near-copies differ in at most this many of 256 bits."""
MIN_CORRELATION = 0.97
"""And their thumbnails correlate at least this much: few bits tell stripes from stripes."""
FLAT = 8
"""Thumbnails with a smaller range of brightness, of 255, are blank: copies of nothing."""
AT_ONCE = 256
N_NAMED = 2
"""Pairs that are named."""


def thumbnails(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the mean brightness of images (N, C, S, S) in 16 x 17 places: (N, 16, 17)."""
    n, side = len(x), x.shape[-1]
    rows, columns = (np.arange(k) * side // k for k in (GRID, GRID + 1))
    sizes = np.outer(np.diff([*rows, side]), np.diff([*columns, side]))
    places = np.zeros((n, GRID, GRID + 1), np.uint8)
    for start in range(0, n, AT_ONCE):
        grey = x[start : start + AT_ONCE].mean(1, dtype=np.float32)  # (B, S, S)
        sums = np.add.reduceat(np.add.reduceat(grey, rows, 1), columns, 2)
        places[start : start + AT_ONCE] = np.rint(sums / np.maximum(sizes, 1))
    return places


def near_copies(places: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return pairs of near-copies (M, 2), the lower row first; of many alike, those in a chain.

    Sorted from each of 16 words on, near-copies are neighbours at least once: differences are in
    few words, where brightness hardly changes.
    """
    rows = np.flatnonzero(np.ptp(places, (1, 2)) >= FLAT)
    rises = places[rows, :, 1:] > places[rows, :, :-1]
    bits = np.packbits(rises.reshape(len(rows), GRID * GRID), axis=1)
    close = [np.zeros((0, 2), np.int64)]
    for word in range(0, bits.shape[1], 2):
        from_word = np.ascontiguousarray(np.roll(bits, -word, axis=1))
        order = np.argsort(from_word.view(f"V{bits.shape[1]}")[:, 0], kind="stable")
        n_bits = np.bitwise_count(bits[order[:-1]] ^ bits[order[1:]]).sum(1)
        close.append(np.stack([order[:-1], order[1:]], 1)[n_bits <= MAX_BITS])
    found = np.unique(np.sort(rows[np.concatenate(close)], 1), axis=0)
    some = np.array_split(found, len(found) // AT_ONCE + 1)
    return np.concatenate([pairs[_correlation(places, pairs) >= MIN_CORRELATION] for pairs in some])


def _correlation(places: NDArray[np.uint8], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the correlation of the thumbnails of each pair (M, 2)."""
    v = places[pairs].reshape(*pairs.shape, GRID * (GRID + 1)).astype(np.float32)
    v -= v.mean(2, keepdims=True)
    v /= np.linalg.norm(v, axis=2, keepdims=True)
    return np.asarray((v[:, 0] * v[:, 1]).sum(1))


def copy_remarks(
    places: NDArray[np.uint8],
    names: Sequence[str],
    y: NDArray[np.int64],
    part: NDArray[np.int64],
    is_drawn: bool,
    groups: NDArray[np.int64] | None,
) -> list[str]:
    """Return remarks about near-copies that training and test may share.

    Args:
        places: Their thumbnails.
        names: Their names.
        y: Their classes.
        part: Of each image; 0 is training.
        is_drawn: Whether seeds draw other parts from part 0.
        groups: Images of one group stay in one part.
    """
    pairs = near_copies(places)
    a, b = pairs.T
    divided = part[a] != part[b]
    if is_drawn:
        divided |= part[a] == 0
    if groups is not None:
        divided &= groups[a] != groups[b]
    pairs = pairs[divided]
    if not len(pairs):
        return []
    n = len(np.unique(pairs))
    named = " and ".join(f"{names[i]} with {names[j]}" for i, j in pairs[:N_NAMED].tolist())
    n_other = int((y[pairs[:, 0]] != y[pairs[:, 1]]).sum())
    have = "pair has" if n_other == 1 else "pairs have"
    other = f"; {n_other:,} {have} different classes" if n_other else ""
    advice = (
        "give groups, so that images of one scene stay together (--groups FILE:COLUMN)"
        if is_drawn
        else "remove them from one of the parts"
    )
    return [
        f"{n:,} of {len(names):,} images are near-copies of others, such as {named}{other}: with "
        f"one in training and the other in test, scores are too good; {advice}"
    ]
