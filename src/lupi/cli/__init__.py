"""The `lupi` command: one file per verb. The only place that prints, exits or reads argv."""

from lupi.cli.app import main

__all__ = ["main"]
