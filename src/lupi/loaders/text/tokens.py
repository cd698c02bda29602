"""Text to words: lower case, letters and digits with inner apostrophes, or one other sign.

    "Don't miss it!"  ->  don't | miss | it | !

Simple on purpose: the same in training, in `lupi predict` and in an exported student, and every
word keeps its position in the text. A run of letters in a script without spaces
counts as one word: separate such texts into words with spaces, or give lists of words.
"""

import re
from typing import NamedTuple

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class Words(NamedTuple):
    """The words of a text and the characters they stand for, `text[start:end]`."""

    words: list[str]
    starts: list[int]
    ends: list[int]


def split_words(text: str) -> list[str]:
    """Return the words of a text."""
    return [word.lower() for word in _WORD.findall(text)]


def locate_words(text: str) -> Words:
    """Return the words of a text with their places."""
    found = Words([], [], [])
    for match in _WORD.finditer(text):
        found.words.append(match[0].lower())
        found.starts.append(match.start())
        found.ends.append(match.end())
    return found
