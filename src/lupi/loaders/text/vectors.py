"""Vectors of all words of all texts by a frozen encoder, in a memory-mapped file.

    <cache>/words-<key>.npy   (N, C) half precision, text after text

The key depends on the encoder (its checksum) and on the words. The file is renamed when complete.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.frozen import encode_once
from lupi.settings import fingerprint

AT_ONCE = 128


def cached_vectors(
    texts: Sequence[Sequence[str]],
    encode: Callable[[Sequence[Sequence[str]]], Sequence[Any]],
    network: str,
    cache: Path,
) -> NDArray[np.float16]:
    """Return the vectors of the words of all texts, (N, C), from the cache if they are there.

    Args:
        texts: Words of each text.
        encode: The frozen encoder: texts to tensors (T, C).
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

    def encoded(first: int) -> NDArray[np.float16]:
        vectors = [found.half().numpy() for found in encode(texts[first : first + AT_ONCE])]
        return np.concatenate(vectors)

    return encode_once(path, n, range(0, len(texts), AT_ONCE), encoded)
