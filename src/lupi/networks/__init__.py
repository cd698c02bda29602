"""Networks: students for images, vectors, texts and sentences."""

from typing import Literal

Pooling = Literal["mean", "attention", "both"]
"""How places become one vector."""
