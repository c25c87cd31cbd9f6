"""XML of annotations, read by a parser that knows no entities and reads no other file."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from framework.core import bounded
from framework.core.errors import FormatError, InputError


def read_xml(path: Path) -> Element:
    """The root of a file.

    Raises:
        FormatError: the file is no XML, or declares a document type or entities. InputError: there is no such file.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data

    def refuse(*_: object) -> None:
        # Entities can make a kilobyte expand to gigabytes, or name other files; they need a document type.
        raise FormatError(
            "the file declares a document type, which annotations never need",
            where=path,
            received="<!DOCTYPE",
            fix="do not open files of unknown origin; remove the declaration if you trust it",
        )

    parser.StartDoctypeDeclHandler = refuse
    data = bounded.read_bytes(path, bounded.DATASET, "annotation file", InputError)
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, LookupError, ValueError, AssertionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            "the annotation is not XML", where=path, received=error, fix="write the file again, as UTF-8"
        ) from error
