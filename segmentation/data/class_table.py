"""Tables of classes that annotation tools write beside masks: names, and which colour or number each has in masks."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from framework.core.errors import FormatError
from framework.vision.dataset_files import abbreviate, is_file, read_lines
from segmentation import palettes
from segmentation.data.label_map import Color

LABELMAP = "labelmap.txt"
"""The table that CVAT and Datumaro write in the folder of a data set in VOC's format."""
_NAME = ("class", "name", "label", "classname", "labelname", "objectclass")
_VALUE = ("pixelvalue", "value", "id", "index", "classid", "classindex")
_CHANNELS = (("r", "red"), ("g", "green"), ("b", "blue"))
_BACKGROUND = "background"
_IGNORED = "__ignore__"  # labelme's first line: number -1


class ClassTable(NamedTuple):
    """Attributes:
    names: By index.
    colors: Of masks in colours, by index.
    values: Stored value to class, of tables that number their classes otherwise than by their order.
    """

    names: tuple[str, ...]
    colors: tuple[Color, ...]
    values: Mapping[int, int] | None


class _Row(NamedTuple):
    """`color` is None where the table has none at all, and empty where it leaves its place empty."""

    name: str
    color: Color | tuple[()] | None
    value: int | None = None


def find_table(name: str, root: Path) -> Path:
    """The file of a table, seen from `root`, from the folder around it, or from the current one."""
    candidates = (root / name, root.parent / name, Path(name))
    return next((path for path in candidates if is_file(path)), candidates[0])


def read_class_table(file: Path) -> ClassTable:
    """The classes of a table, by their order.

    * labelmap.txt of CVAT and Datumaro, `name:red,green,blue:parts:actions` a line.
    * label_colors.txt, `red green blue name` a line, as CamVid has it, or with the name in front.
    * A CSV with a first line: `name,r,g,b` (class_dict.csv), or `Pixel Value, Class` (Roboflow's _classes.csv).
    * Names alone, one a line, as labelme's labels.txt; "__ignore__" is none.

    Where the places of colours are empty, Datumaro has VOC's colours, behind a background that the table may lack.

    Raises:
        InputError: there is no such file. FormatError: it is no such table.
    """
    lines = read_lines(file, "table of classes")
    lines[0] = lines[0].removeprefix("\ufeff")
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    columns = _columns(numbered[0][1], str(file)) if numbered else {}
    if columns:
        rows = [_read_cells(line, columns, f"{file}, line {number}") for number, line in numbered[1:]]
    else:
        plain = [(number, line) for number, line in numbered if not line.lstrip().startswith("#")]
        is_labelmap = bool(plain) and all(":" in line for _, line in plain)
        read = _read_labelmap_line if is_labelmap else _read_plain_line
        rows = [read(line, f"{file}, line {number}") for number, line in plain]
        rows = [row for row in rows if row.name != _IGNORED]
    return _make_table(rows, file)


def _make_table(rows: list[_Row], file: Path) -> ClassTable:
    is_drawn = any(row.color == () for row in rows) and all(not row.color for row in rows)
    if is_drawn and not any(row.name.strip("_").lower() == _BACKGROUND for row in rows):
        rows = [_Row(_BACKGROUND, ()), *rows]
    names = tuple(row.name for row in rows)
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise FormatError(
            "the table has no name of its own for each of two or more classes",
            where=file,
            received=abbreviate(list(names)) if names else "no class",
            allowed="a class a line, each with another name",
        )
    colored = [row.color for row in rows if row.color]
    if colored and len(colored) < len(rows):
        raise FormatError(
            "some classes of the table have a colour, and some have none",
            where=file,
            received=abbreviate([row.name for row in rows if not row.color]) + " without one",
            allowed="a colour for each class, or for none",
        )
    if len(set(colored)) < len(colored):
        raise FormatError("classes of the table have the same colour", where=file, received=_twice(rows))
    drawn = tuple(tuple(map(int, color)) for color in palettes.of_classes(len(rows)))
    numbers = [row.value for row in rows if row.value is not None]
    values = {number: index for index, number in enumerate(numbers)}
    if len(values) < len(numbers):
        raise FormatError("classes of the table have the same value", where=file, received=sorted(numbers))
    is_order = numbers == list(range(len(numbers)))
    return ClassTable(names, tuple(colored or drawn), None if is_order else values)  # type: ignore[arg-type]


def _twice(rows: list[_Row]) -> str:
    colors = [row.color for row in rows]
    return abbreviate([f"{row.name} {row.color}" for row in rows if colors.count(row.color) > 1])


def _read_labelmap_line(line: str, where: str) -> _Row:
    name, _, rest = line.partition(":")
    color = rest.partition(":")[0].strip()
    return _Row(name.strip(), _read_color(color.split(","), where) if color else ())


def _read_plain_line(line: str, where: str) -> _Row:
    words = line.split()
    for color, name in ((words[:3], words[3:]), (words[-3:], words[:-3])):
        if name and len(color) == 3 and all(word.isdecimal() for word in color):
            return _Row(" ".join(name), _read_color(color, where))
    return _Row(line.strip(), () if line[:1].isspace() else None)


def _columns(line: str, where: str) -> dict[str, int]:
    """Where the columns of a CSV are; empty where the line names none."""
    plain = [
        "".join(sign for sign in cell.lower() if sign.isalnum()) for cell in next(csv.reader([line]), [])
    ]
    titles = {"name": _NAME, "value": _VALUE, **{names[0]: names for names in _CHANNELS}}
    columns = {
        key: position
        for key, names in titles.items()
        if (position := next((plain.index(name) for name in names if name in plain), None)) is not None
    }
    has_colors = all(names[0] in columns for names in _CHANNELS)
    return columns if "name" in columns and (has_colors or "value" in columns) else {}


def _cells(line: str, where: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise FormatError("a row is no CSV", where=where, received=error) from error


def _read_cells(line: str, columns: Mapping[str, int], where: str) -> _Row:
    cells = _cells(line, where)
    if len(cells) <= max(columns.values()):
        raise FormatError("a row has too few columns", where=where, received=line[:80])
    channels = [cells[columns[names[0]]] for names in _CHANNELS if names[0] in columns]
    value = cells[columns["value"]] if "value" in columns else None
    if value is not None and not (value.isdecimal() and int(value) <= 65535):
        raise FormatError("a class has no number", where=where, received=line[:80], allowed="0 to 65535")
    color = _read_color(channels, where) if len(channels) == len(_CHANNELS) else None
    return _Row(cells[columns["name"]], color, None if value is None else int(value))


def _read_color(channels: list[str], where: str) -> Color:
    numbers = list(_numbers(channels))
    if len(numbers) != 3 or len(channels) != 3:
        raise FormatError(
            "a class has no colour",
            where=where,
            received=", ".join(channels)[:80],
            allowed="three of 0 to 255",
        )
    return numbers[0], numbers[1], numbers[2]


def _numbers(texts: list[str]) -> Iterator[int]:
    for text in map(str.strip, texts):  # which strips more than int() does
        if text.isdecimal() and int(text) <= 255:
            yield int(text)
