"""XML without document types, which could declare entities that expand without end."""

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat


class BadXmlError(Exception):
    """An XML file that is not a valid annotation."""


def read_xml(data: bytes) -> Element:
    """Return the root element of a document."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = builder.start
    parser.CharacterDataHandler = builder.data
    parser.EndElementHandler = builder.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BadXmlError(f"not well-formed XML: {error}") from None
    return builder.close()


def _refuse_doctype(*_: object) -> None:
    raise BadXmlError("it declares a document type, which is not allowed")
