"""The one error a user's mistake raises: shown without a traceback, saying what to do."""

MAX_MESSAGE = 4000
"""Length of a message in characters; a file may contain a cell of megabytes."""


class LupiError(Exception):
    """Bad input: the message names what was given, what was expected and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


def shortened(message: str, most: int = MAX_MESSAGE) -> str:
    """Return a text without its middle if that makes it too long to be read."""
    if len(message) <= most:
        return message
    half = most // 2
    return f"{message[:half]} … ({len(message):,} characters) … {message[-half:]}"
