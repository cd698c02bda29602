"""Vectors of all words of all texts by a frozen encoder, in a memory-mapped file.

    <cache>/words-<key>.npy   (N, C) half precision, text after text

The key depends on the encoder (its checksum) and on the words. The file is renamed when complete.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.files import write_whole
from lupi.loaders.progress import tell
from lupi.settings import fingerprint

AT_ONCE = 128


def cached_vectors(
    texts: Sequence[Sequence[str]],
    encode: Callable[[Sequence[Sequence[str]]], Sequence[Any]],
    n_channels: int,
    network: str,
    cache: Path,
) -> NDArray[np.float16]:
    """Return the vectors of the words of all texts, (N, C), from the cache if they are there.

    Args:
        texts: Words of each text.
        encode: The frozen encoder: texts to tensors (T, C).
        n_channels: C.
        network: Its identity, such as the checksum of its weights.
        cache: Folder.
    """
    words = hashlib.sha256()
    for text in texts:
        words.update("\x1f".join(text).encode() + b"\x1e")
    key = fingerprint({"network": network, "words": words.hexdigest()})
    path = cache / f"words-{key}.npy"
    n = sum(map(len, texts))
    if not n:
        raise LupiError("the texts have no words")

    def write(temporary: Path) -> None:
        vectors = open_memmap(temporary, mode="w+", dtype=np.float16, shape=(n, n_channels))
        start = 0
        for first in range(0, len(texts), AT_ONCE):
            for encoded in encode(texts[first : first + AT_ONCE]):
                vectors[start : start + len(encoded)] = encoded.half().numpy()
                start += len(encoded)
            tell(min(first + AT_ONCE, len(texts)), len(texts))
        vectors.flush()

    if not path.exists():
        write_whole(path, write)
    stored: NDArray[np.float16] = open_memmap(path, mode="r")
    return stored
