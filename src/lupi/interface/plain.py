"""Text from files, printed so that it can't control the terminal."""

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of text
    "\ud800-\udfff]"  # surrogates: bytes of file names that are not UTF-8
)


def visible(text: str) -> str:
    r"""Return text with control characters and undecodable bytes as escapes such as \x1b."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class PlainConsole(Console):
    """A console on which only rich itself writes control sequences, never the printed text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object with control characters in its text as escapes."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)
