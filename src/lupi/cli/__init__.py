"""The `lupi` command, one file per verb. Only this package prints, exits or reads argv."""

from lupi.cli.app import main

__all__ = ["main"]
