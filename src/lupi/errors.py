"""The one error a user's mistake raises: shown without a traceback, saying what to do."""


class LupiError(Exception):
    """Bad input: the message names what was given, what was expected and what to do."""
