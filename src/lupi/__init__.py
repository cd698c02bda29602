"""Learn with privileged information, predict without it, and know whether it helped."""

__version__ = "0.1.0"
