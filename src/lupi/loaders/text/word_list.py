"""A list of words in a file: the rationale that needs no annotator."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.loaders.text.tokens import split_words

MAX_BYTES = 16 * 2**20
"""Of a list of words."""


def read_word_list(path: Path | None, lexemes: Mapping[str, int]) -> NDArray[np.int64] | None:
    """Return those lexemes that a file names, one word per line; None without a file.

    Empty lines and lines that start with # or ; are left out.
    """
    if path is None:
        return None
    try:
        lines = read_regular(path, MAX_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LupiError(f"lexicon: {path} can't be read as UTF-8 text: {error}") from None
    words = {word for line in lines if line[:1] not in "#;" for word in split_words(line)}
    known = sorted(lexemes[word] for word in words if word in lexemes)
    if not known:
        raise LupiError(f"lexicon: no text has any of the {len(words)} words in {path}")
    return np.array(known, dtype=np.int64)
