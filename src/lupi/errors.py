"""The one error a user's mistake raises: shown without a traceback, saying what to do."""

MAX_MESSAGE = 4000
"""Length of a message in characters; a file may contain a cell of megabytes."""


class LupiError(Exception):
    """Bad input: the message names what was given, what was expected and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


def shortened(message: str) -> str:
    """Return a message without the middle of one that is too long to be read."""
    if len(message) <= MAX_MESSAGE:
        return message
    half = MAX_MESSAGE // 2
    return f"{message[:half]} … ({len(message):,} characters) … {message[-half:]}"
