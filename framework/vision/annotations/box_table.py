"""Tables of boxes: a CSV file with an image, a class and a box a row, as TensorFlow's models, Roboflow, RetinaNet's
programs and Open Images have it.

Source: https://storage.googleapis.com/openimages/web/download_v7.html and
https://github.com/fizyr/keras-retinanet#csv-datasets
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import files_by_split
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    Box,
    merge_splits,
)
from framework.vision.dataset_files import read_lines
from framework.vision.image import read_size

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "image": ("filename", "filepath", "imageid", "imagepath", "imagename", "image", "path", "file", "img"),
    "label": ("class", "classname", "labelname", "label", "category", "categoryname", "name", "objectclass"),
    "x0": ("xmin", "x1", "left", "xtl"),
    "y0": ("ymin", "y1", "top", "ytl"),
    "x1": ("xmax", "x2", "right", "xbr"),
    "y1": ("ymax", "y2", "bottom", "ybr"),
}
"""The names of columns, in small letters without signs between them; of several the first counts."""
_CORNER: Mapping[str, tuple[str, ...]] = {
    "x0": ("x", "bboxx", "xmin", "left"),
    "y0": ("y", "bboxy", "ymin", "top"),
    "width": ("w", "bboxw", "bboxwidth", "width"),
    "height": ("h", "bboxh", "bboxheight", "height"),
}
_IGNORED = ("isgroupof", "iscrowd", "difficult")
_DECIMAL = re.compile(r"-?\d+,\d+")
_SIDES = ("x0", "y0", "x1", "y1")
_SEPARATORS = (",", ";", "\t")
_NAMES = "class-descriptions*.csv"
_MOST_SHARE = 1.001  # of a side, as tools round


@dataclass(frozen=True)
class _Row:
    """Cells of a row: an empty label is an image without objects."""

    where: str
    image: str
    label: str
    sides: tuple[str, str, str, str]
    is_valid: bool = True


def find_tables(folder: Path) -> Mapping[str, Path]:
    """The tables of boxes of a folder, or of `annotations` in it, by split: a word of their name, "" where it tells
    none. Raises: InputError, where several are of one split."""
    paths = (*sorted(folder.glob("*.csv")), *sorted((folder / "annotations").glob("*.csv")))
    return files_by_split([path for path in paths if is_box_table(path)], folder, "tables of boxes")


def is_box_table(file: Path) -> bool:
    """Whether the first line of a file has the columns of boxes, or is a row of RetinaNet's."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return _separator(lines.readline(65536)) is not None
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def _separator(line: str) -> str | None:
    """What parts the columns of a first line; spreadsheets write semicolons where a comma is the decimal point. None
    where the line is none of a table of boxes. Raises: csv.Error."""
    for separator in _SEPARATORS:
        first = [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
        if _columns(first) is not None or _plain_columns(first) is not None:
            return separator
    return None


def read_box_tables(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The boxes of a file, or of the files of a folder, each of which is a split by its name.

    The first line names the columns: an image, a class and `xmin, ymin, xmax, ymax` or `x, y, width, height`, in the
    spellings of `_COLUMNS`; without such a line the columns are those of RetinaNet's programs, `image, x1, y1, x2, y2,
    class`, where the last five are empty for an image without objects, or makesense.ai's, `class, x, y, width, height,
    image, image's width, image's height`. Columns are parted by commas, semicolons, with
    which numbers may have decimal commas, or tabs. Boxes whose sides are all at most 1 are shares
    of the image's sides, as in Open Images, else pixels. Rows marked as a group, a crowd or difficult have `is_valid`
    False; the names behind Open Images' labels stand in class-descriptions.csv. Classes are sorted. Rows without a box
    that can be read are left out and told in `problems`.

    Args:
        images: The folder of the images; without it they are looked for by their name in the file's folder and all
            folders in it, and, for a file in `annotations`, beside that.

    Raises:
        InputError: there is no such file, no object in it, or an image is not there. FormatError: it is not of this
            format.
    """
    if source.is_file():
        return _read_table(source, images)
    tables = find_tables(source)
    if not tables:
        raise InputError("there is no table of boxes", where=source, allowed="a .csv with a box a row")
    sets = {split: _read_table(path, images) for split, path in tables.items()}
    return next(iter(sets.values())) if len(sets) == 1 else merge_splits(sets)


def _read_table(file: Path, images: Path | None) -> AnnotatedSet:
    rows = _read_rows(file)
    descriptions = _read_names(file)
    folder = images or (file.parent.parent if file.parent.name == "annotations" else file.parent)
    paths = ImageIndex(folder)
    numbers, problems = _numbers(rows)
    filled = [sides for sides in numbers if sides is not None]
    shares = bool(filled) and max(max(sides) for sides in filled) <= _MOST_SHARE
    sizes: dict[Path, tuple[int, int]] = {}
    objects: dict[Path, list[AnnotatedObject]] = {}
    for row, sides in zip(rows, numbers, strict=True):
        path = paths.find(row.image, row.where)
        of_image = objects.setdefault(path, [])
        if sides is None:
            continue
        if path not in sizes:
            sizes[path] = read_size(path)
        box = _scaled(sides, sizes[path]) if shares else sides
        if box[2] <= box[0] or box[3] <= box[1]:
            problems.append(f"{row.where}: {row.label} {[round(side, 1) for side in box]} has no area")
            continue
        label = descriptions.get(row.label, row.label)
        of_image.append(AnnotatedObject(label, box, is_valid=row.is_valid))
    read = [
        AnnotatedImage(path, paths.name(path), sizes.get(path), tuple(of_image))
        for path, of_image in objects.items()
    ]
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError("the table has no object", where=file, received=f"{len(rows)} rows")
    return AnnotatedSet(tuple(read), names, tuple(problems))


def _read_rows(file: Path) -> list[_Row]:
    lines = read_lines(file, "table of boxes")
    lines[0] = lines[0].removeprefix("\ufeff")
    try:
        separator = _separator(lines[0]) or ","
        cells = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    except csv.Error as error:
        raise FormatError("the file is no CSV", where=file, received=error) from error
    named = _columns(cells[0]) if cells else None
    body = cells[1:] if named is not None else cells
    columns = named or (_plain_columns(cells[0]) if cells else None)
    if columns is None:
        raise FormatError(
            "the table has no columns of boxes",
            where=file,
            received=",".join(cells[0])[:80] if cells else "no line",
            allowed="filename, class, xmin, ymin, xmax, ymax in the first line, or rows of image, x1, y1, x2, y2, "
            "class",
        )
    read = []
    for number, row in enumerate(body, start=1 + len(cells) - len(body)):
        if not any(row):
            continue
        where = f"{file}, row {number}"
        if max(columns.values()) >= len(row):
            raise FormatError(
                "a row has too few columns",
                where=where,
                received=",".join(row)[:80],
                allowed=f"{len(cells[0])} columns",
            )
        if separator == ";":
            row = [cell.replace(",", ".") if _DECIMAL.fullmatch(cell) else cell for cell in row]
        read.append(_row(row, columns, where))
    return read


def _row(row: Sequence[str], columns: Mapping[str, int], where: str) -> _Row:
    sides = tuple(row[columns[side]] for side in _SIDES if side in columns)
    if "width" in columns:
        sides = (*sides, row[columns["width"]], row[columns["height"]])
        sides = _corner_form(sides)
    ignored = any(row[columns[name]] == "1" for name in _IGNORED if name in columns)
    x0, y0, x1, y1 = sides
    return _Row(where, row[columns["image"]], row[columns["label"]], (x0, y0, x1, y1), not ignored)


def _corner_form(sides: Sequence[str]) -> tuple[str, ...]:
    """x, y, width, height as the corners; what is no number stays."""
    try:
        x, y, width, height = map(float, sides)
    except ValueError:
        return tuple(sides)
    return repr(x), repr(y), repr(x + width), repr(y + height)


def _columns(names: Sequence[str]) -> dict[str, int] | None:
    """Where each column is; None where the names are not those of a table of boxes."""
    plain = ["".join(sign for sign in name.lower() if sign.isalnum()) for name in names]
    for listed in (_COLUMNS, {**{key: _COLUMNS[key] for key in ("image", "label")}, **_CORNER}):
        columns = {}
        for key, spellings in listed.items():
            position = next((plain.index(one) for one in spellings if one in plain), None)
            if position is not None and position not in columns.values():
                columns[key] = position
        if len(columns) == len(listed):
            return columns | {name: plain.index(name) for name in _IGNORED if name in plain}
    return None


def _plain_columns(row: Sequence[str]) -> dict[str, int] | None:
    """Where each column of a table without names is, by a row of it; None where it is none of boxes.

    RetinaNet's programs have an image, four numbers or nothing, and a class; makesense.ai has a class, x, y, width,
    height, an image, and its width and height.
    """
    cells = [cell.strip() for cell in row]
    are_numbers = [_number(cell) is not None for cell in cells]
    if len(cells) == 6 and cells[0] and (not any(cells[1:]) or (all(are_numbers[1:5]) and cells[5])):
        return {"image": 0, "x0": 1, "y0": 2, "x1": 3, "y1": 4, "label": 5}
    if (
        len(cells) == 8
        and cells[0]
        and Path(cells[5]).suffix
        and are_numbers[1:] == 4 * [True] + [False, True, True]
    ):
        return {"label": 0, "x0": 1, "y0": 2, "width": 3, "height": 4, "image": 5}
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _numbers(rows: Sequence[_Row]) -> tuple[list[Box | None], list[str]]:
    """The box of each row; None where it has none, and what is wrong with those that are said."""
    boxes: list[Box | None] = []
    problems: list[str] = []
    for row in rows:
        sides = [_number(side) for side in row.sides]
        if not row.label and not any(row.sides):  # an image without objects
            boxes.append(None)
        elif None in sides or not row.label:
            problems.append(
                f"{row.where}: {row.label or 'no class'} {', '.join(row.sides)} is no box with a class"
            )
            boxes.append(None)
        else:
            x0, y0, x1, y1 = (side or 0.0 for side in sides)
            boxes.append((x0, y0, x1, y1))
    return boxes, problems


def _scaled(sides: Box, size_hw: tuple[int, int]) -> Box:
    height, width = size_hw
    return sides[0] * width, sides[1] * height, sides[2] * width, sides[3] * height


def _read_names(file: Path) -> Mapping[str, str]:
    """The names behind labels, of Open Images' table beside the file."""
    names: dict[str, str] = {}
    for path in sorted(file.parent.glob(_NAMES)):
        rows = csv.reader(read_lines(path, "list of classes"))
        names |= {row[0].strip(): row[1].strip() for row in rows if len(row) == 2 and all(row)}
    return names
