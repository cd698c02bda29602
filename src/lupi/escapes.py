"""Text from files, escaped for where it is written: a terminal, a spreadsheet, Markdown."""

import re
from typing import Any

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of text
    "\ud800-\udfff]"  # surrogates: bytes of file names that are not UTF-8
)


def visible(text: str) -> str:
    r"""Return text with control characters and undecodable bytes as escapes such as \x1b."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def csv_cell(value: Any) -> Any:
    """Return a value that no spreadsheet takes for a formula: such texts begin with a quote."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def markdown_text(text: str) -> str:
    """Return text that is shown as it is in Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|&#])", r"\\\1", " ".join(visible(text).split()))


def markdown_code(text: str) -> str:
    """Return text as inline code in Markdown."""
    shown = " ".join(visible(text).split())
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}" if longest else f"`{shown}`"
