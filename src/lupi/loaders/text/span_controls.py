"""Controls for rationales: uninformative spans, and a list of words that needs no annotator."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lupi.core import Control, derive_seed
from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.loaders.text.tokens import split_words
from lupi.loaders.xstar.controls import another_row

Region = NDArray[np.float32]
N_POSITIONS = 100
"""Parts of a text over which the constant rationale is averaged."""
MAX_LIST_BYTES = 16 * 2**20
"""Of a list of words."""


def control_regions(
    regions: Sequence[Region], lengths: Sequence[int], control: Control, seed: int
) -> list[Region]:
    """Apply a control to rationales (T,) of texts with `lengths` words.

    shuffled: another text's rationale, stretched to the length of this one; constant: how often
    each part of a text, from start to end, belongs to a rationale; random: spans of the same
    lengths and values at places drawn evenly, in random order.
    """
    if control == "real" or not regions:
        return list(regions)
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    if control == "shuffled":
        other = another_row(len(regions), rng)
        return [_stretch(regions[i], n) for i, n in zip(other, lengths, strict=True)]
    if control == "constant":
        mean = np.mean([_stretch(region, N_POSITIONS) for region in regions], axis=0)
        return [_stretch(mean.astype(np.float32), n) for n in lengths]
    return [_place_anew(region, rng) for region in regions]


def read_word_list(path: Path | None, lexemes: Mapping[str, int]) -> NDArray[np.int64] | None:
    """Return those lexemes that a file names, one word per line; None without a file.

    Empty lines and lines that start with # or ; are left out.
    """
    if path is None:
        return None
    try:
        lines = read_regular(path, MAX_LIST_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LupiError(f"lexicon: {path} can't be read as UTF-8 text: {error}") from None
    words = {word for line in lines if line[:1] not in "#;" for word in split_words(line)}
    known = sorted(lexemes[word] for word in words if word in lexemes)
    if not known:
        raise LupiError(f"lexicon: no text has any of the {len(words)} words in {path}")
    return np.array(known, dtype=np.int64)


def lexicon_regions(texts: Sequence[NDArray[np.int32]], lexicon: NDArray[np.int64]) -> list[Region]:
    """Return rationales that mark every word of a list."""
    return [np.isin(text, lexicon).astype(np.float32) for text in texts]


def _stretch(region: Region, n: int) -> Region:
    """Return a rationale of n words, each like the word at the same part of the text."""
    places = ((np.arange(n) + 0.5) * len(region) / n).astype(np.int64)
    return region[places]


def _place_anew(region: Region, rng: np.random.Generator) -> Region:
    """Move the spans of a rationale to random positions."""
    edges = np.flatnonzero(np.diff(region)) + 1
    runs = np.split(region, edges)
    spans = [run for run in runs if run[0] > 0]
    n_free = len(region) - sum(map(len, spans))
    # Words outside are dealt to the gaps before, between and after the spans.
    cuts = np.sort(rng.integers(0, n_free + 1, len(spans)))
    gaps = np.diff([0, *cuts, n_free])
    moved: list[Region] = []
    for gap, i in zip(gaps, rng.permutation(len(spans)), strict=False):
        moved += [np.zeros(gap, np.float32), spans[i]]
    return np.concatenate([*moved, np.zeros(gaps[-1], np.float32)])
