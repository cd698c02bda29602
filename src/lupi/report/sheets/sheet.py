"""A static page with drawings, tables and text: one HTML file without scripts."""

from collections.abc import Sequence
from dataclasses import dataclass

import jinja2

from lupi import __version__
from lupi.report.samples import ShadedSite


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a data URI, with its caption."""

    uri: str
    alt: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a sheet; empty parts are omitted."""

    title: str
    words: Sequence[str] = ()
    drawing: str = ""
    """An SVG."""
    wide: Image | None = None
    """An image as wide as the page."""
    strips: Sequence[Sequence[Image]] = ()
    """Rows of small images."""
    texts: Sequence[ShadedSite] = ()
    """Texts shaded by the variance of the noise."""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """The rows of a table with header `head`."""


def templates() -> jinja2.Environment:
    """Return the templates of pages, which escape what they show."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lupi.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_sheet(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a page: the lead in a box, then the sections."""
    template = templates().get_template("sheet.html.j2")
    return template.render(title=title, lead=lead, sections=sections, version=__version__)
