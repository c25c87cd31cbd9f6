"""What a PDF page says by itself: its characters, drawn paths and images, as plain arrays (an optional package).

`framework.workflow.files.pdf.PdfReader.content` is how to get it. All coordinates are pixels of the rendered page (x
to the right, y downwards, crop box and /Rotate applied); `PageContent.to_points` leads back to the page's own points.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from framework.workflow.files.pdf_annotations import Annotations, read_annotations
from framework.workflow.files.pdf_chars import read_char_values, which_generated
from framework.workflow.files.pdf_doubles import (
    add_repeated,
    bounds_at,
    find_doubles,
    insert_doubles,
    object_bounds,
)
from framework.workflow.files.pdf_handles import Handle
from framework.workflow.files.pdf_matrix import Matrix, apply, apply_boxes, invert, multiply
from framework.workflow.files.pdf_visibility import Drawings, is_in_layer, unseen_chars

if TYPE_CHECKING:
    from pypdfium2 import PdfFormEnv, PdfPage

Color = tuple[int, int, int, int]  # RGBA

MAX_CHARS = 200_000  # of a page; a page of small print has 15,000
MAX_CLIPS = 100  # of one object
LEAST_SIDE = 0.02  # pixels: what is narrower within its clip is not drawn
MAX_SEGMENTS = 60_000  # of the paths of a page: maps and plots have millions, tables hundreds
MAX_DEPTH = 8  # of forms in forms
_OUTLINED = (1, 5)
_MONO = ("mono", "courier", "consolas", "menlo", "cmtt", "sftt", "lmtt", "typewriter", "inconsolata")
_LAM, _ALEFS = "\u0644", "\u0622\u0623\u0625\u0627"
_USUAL_NAME = 128  # bytes of a font's name; of longer ones PDFium is asked again
LEAST_INK = 0.05  # points: the height of what is drawn, at least
_NO_CHARACTER = (0, 10, 13)
_SOFT_HYPHENS = (2, 0xAD)
_HYPHENS = (0x2D, 0x2010)  # PDFium tells whether one breaks a word
_INVISIBLE = (3, 7)  # text rendering modes: neither filled nor stroked (ISO 32000-1, table 106)


@dataclass(frozen=True)
class TextStyle:
    """How a run of characters is set. `size` in pixels, `weight` 400 is regular, `angle` clockwise in degrees; `color`
    is that of the fill, or of the stroke where letters are only outlined; `mono`: all its letters are of one width.
    """

    font: str
    size: float
    weight: int
    italic: bool
    angle: float
    invisible: bool = False
    color: Color = (0, 0, 0, 255)
    mono: bool = False

    @property
    def bold(self) -> bool:
        return self.weight >= 600


@dataclass(frozen=True, eq=False)
class PageText:
    """The N characters of a page, in the order in which its content draws them.

    `text[i]` may be a space; line ends that PDFium adds are left out. `boxes` [N, 4] are those of the ink, `cells`
    [N, 4] those of the advance width and the font's ascent and descent; `origins` [N, 2] lie on the baseline;
    `styles[style[i]]` is the style; `unmapped` [N]: the font does not say which character it is; `generated` [N]:
    PDFium has put it in (a space at a gap); `hyphen` [N]: a hyphen at which a word is broken over two lines;
    `objects` [N]: the number of the text object that it belongs to, -1 where that is not known; `unseen` [N]: it is
    filled, but nobody can see it (`pdf_visibility`).
    """

    text: tuple[str, ...]
    boxes: np.ndarray
    cells: np.ndarray
    origins: np.ndarray
    style: np.ndarray
    styles: tuple[TextStyle, ...]
    unmapped: np.ndarray
    generated: np.ndarray
    hyphen: np.ndarray
    objects: np.ndarray
    unseen: np.ndarray


@dataclass(frozen=True, eq=False)
class PagePath:
    """One drawn path. `segments` [S, 4] are its straight lines (x0, y0, x1, y1); `rectangles` [R, 4] its upright
    rectangles; `width` is that of the stroke in pixels; `curved` says that it has curves too. `outlines` [C, 4] are
    the boxes of its subpaths with curves, and `bbox` that of all of it.
    """

    segments: np.ndarray
    rectangles: np.ndarray
    stroke: Color | None
    fill: Color | None
    width: float
    dashed: bool
    curved: bool
    outlines: np.ndarray
    bbox: tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class PageContent:
    """Characters, paths, boxes of images [I, 4] and annotations of one page of `width` x `height` pixels.

    `to_points` leads from pixels to the page's points; `scale` is pixels a point; `warnings` says what was left out.
    """

    width: int
    height: int
    scale: float
    to_points: Matrix
    text: PageText
    paths: tuple[PagePath, ...]
    images: np.ndarray
    annotations: Annotations
    warnings: tuple[str, ...] = ()


def read_content(
    page: PdfPage, page_index: int, dpi: float, form: PdfFormEnv | None = None, *, layers: bool = False
) -> PageContent:
    """The content of an open pypdfium2 page. The caller holds PDFium's lock.

    Args:
        page_index: The place of the page in its document.
        form: pypdfium2's form environment of the document, where it has a form.
        layers: Whether forms of the document may be in layers that are switched off, which PDFium does not tell.
    """
    warnings: list[str] = []
    box = page.get_bbox() if hasattr(page, "get_bbox") else page.get_cropbox()
    left, bottom, right, top = box  # type: ignore[misc]  # get_cropbox falls back to another box
    turn = page.get_rotation() % 360
    page_width, page_height = page.get_size()
    scale = dpi / 72.0
    width, height = math.ceil(page_width * scale), math.ceil(page_height * scale)
    # PDFium stretches the page over whole pixels.
    sx, sy = width / max(page_width, 1e-6), height / max(page_height, 1e-6)
    to_pixels: Matrix = {
        0: (sx, 0.0, 0.0, -sy, -left * sx, top * sy),
        90: (0.0, sy, sx, 0.0, -bottom * sx, -left * sy),
        180: (-sx, 0.0, 0.0, sy, right * sx, -bottom * sy),
        270: (0.0, -sy, -sx, 0.0, top * sx, right * sy),
    }[turn]
    paths, images, drawings = _read_objects(page, to_pixels, layers, warnings)
    text, pointers = _read_text(page, to_pixels, drawings, warnings)
    unseen = unseen_chars(page, text, pointers, drawings, (width, height), scale)
    return PageContent(
        width,
        height,
        scale,
        invert(to_pixels),
        replace(text, unseen=unseen) if unseen.any() else text,
        paths,
        images,
        read_annotations(page, page_index, to_pixels, form, warnings),
        tuple(warnings),
    )


def _read_text(
    page: PdfPage, to_pixels: Matrix, drawings: Drawings, warnings: list[str]
) -> tuple[PageText, list[Handle]]:
    import pypdfium2.raw as raw

    textpage = page.get_textpage()
    try:
        count = max(raw.FPDFText_CountChars(textpage.raw), 0)
        if count > MAX_CHARS:
            warnings.append(f"only the first {MAX_CHARS:,} of {count:,} characters are read")
            count = MAX_CHARS
        return _read_chars(raw, textpage.raw, count, to_pixels, drawings, warnings)
    finally:
        textpage.close()


def _read_chars(
    raw: ModuleType, handle: Handle, count: int, to_pixels: Matrix, drawings: Drawings, warnings: list[str]
) -> tuple[PageText, list[Handle]]:
    """The characters, and pointers to their text objects by number."""
    values = read_char_values(handle, count)
    codes = np.array(values.codes, np.int64)
    # Maps of some fonts give ligatures the code 0: what is drawn there is a letter, and which one is not known.
    lost = (codes == 0) & values.has_ink & (values.ink[:, 3] - values.ink[:, 1] > LEAST_INK)
    if ((codes & 0xF800) == 0xD800).any():
        codes = np.array(_code_points(values.codes), np.int64)
    codes[lost] = 0xFFFD
    used = np.flatnonzero(~np.isin(codes, _NO_CHARACTER) & values.has_ink)
    codes, indices = codes[used], used.tolist()
    soft = np.isin(codes, _SOFT_HYPHENS)
    text = list(map(chr, np.where(soft, 0x2D, np.where(codes < 0x110000, codes, 0xFFFD)).tolist()))
    keys = [values.objects[i] for i in indices]
    first = dict(zip(reversed(keys), reversed(indices), strict=True))  # the first character of each object
    numbers: dict[TextStyle, int] = {}
    known: dict[int | None, tuple[int, int]] = {}  # by a text object's address: its style, its number
    pointers: list[Handle] = []
    for key in dict.fromkeys(keys):
        pointer: Handle | None = raw.FPDFText_GetTextObject(handle, first[key]) if key else None
        made = _style(raw, handle, first[key], pointer, to_pixels)
        known[key] = numbers.setdefault(made, len(numbers)), len(pointers) if key else -1
        if pointer is not None:
            pointers.append(pointer)
    style, objects = [known[key][0] for key in keys], [known[key][1] for key in keys]
    hyphen = soft.copy()
    for at in np.flatnonzero(np.isin(codes, _HYPHENS)).tolist():
        hyphen[at] = raw.FPDFText_IsHyphen(handle, indices[at]) == 1
    generated = codes == 32
    generated[generated] = which_generated(handle, used[generated].tolist())
    boxes = values.ink[used]
    cells = values.loose[used].astype(np.float64)
    origins = values.origins[used]
    sizes = np.array([one.size for one in numbers]) / math.hypot(*to_pixels[2:4])
    doubles = find_doubles(
        np.array(objects, int),
        sizes[style] if style else np.zeros(0),
        cells,
        boxes,
        origins,
        generated,
        codes == 32,
        lambda number: object_bounds(pointers[number]),
    )
    if len(known) < len(drawings.texts) and count < MAX_CHARS:
        counts = Counter(keys)
        letters = {key: at if counts[key] == 1 else -1 for at, key in enumerate(keys)}
        doubles = add_repeated(doubles, drawings.texts, letters, sizes[style], boxes, bounds_at)
    if doubles.doubtful:
        warnings.append(
            f"{doubles.doubtful:,} letters of condensed text stand on the place of the next one: which of them are "
            "doubled is not known, and they are read once"
        )
    if len(doubles.after):
        every, shift = insert_doubles(doubles, len(used))
        used, generated, hyphen = used[every], generated[every], hyphen[every]
        boxes, cells = boxes[every] + np.tile(shift, 2), cells[every] + np.tile(shift, 2)
        origins = origins[every] + shift
        text, style, objects = ([values[i] for i in every] for values in (text, style, objects))
    good = np.isfinite(boxes).all(1) & np.isfinite(cells).all(1) & np.isfinite(origins).all(1)
    good &= (np.abs(boxes) < 1e6).all(1) & (np.abs(origins) < 1e6).all(1) & (np.abs(cells) < 1e6).all(1)
    at = np.flatnonzero(good)
    split = _split_ligatures(boxes, cells, origins, text)
    boxes, cells, origins = map(split, (boxes, cells, origins))
    chars = PageText(
        tuple(map(text.__getitem__, at.tolist())),
        apply_boxes(to_pixels, boxes[at]),
        apply_boxes(to_pixels, cells[at]),
        apply(to_pixels, origins[at]),
        np.array(style, np.int32)[at] if len(at) else np.zeros(0, np.int32),
        tuple(numbers),
        ((np.array(values.unmapped, int) == 1) | lost)[used[at]],
        generated[at],
        hyphen[at],
        np.array(objects, np.int32)[at] if len(at) else np.zeros(0, np.int32),
        np.zeros(len(at), bool),
    )
    return chars, pointers


def _code_points(units: list[int]) -> list[int]:
    """UTF-16 as code points at the second half of each pair; 0 for the first half."""
    points, high = [], 0
    for unit in units:
        if 0xD800 <= unit < 0xDC00:
            high = unit
            points.append(0)
            continue
        if 0xDC00 <= unit < 0xE000 and high:
            unit = 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00)
        points.append(unit)
        high = 0
    return points


def _split_ligatures(
    boxes: np.ndarray, cells: np.ndarray, origins: np.ndarray, text: list[str]
) -> Callable[[np.ndarray], np.ndarray]:
    """PDFium gives every letter of a ligature the whole glyph's box: a function that gives each its share.

    Letters of Arabic come in either order; of lam and alef, which alone are always joined, lam is read first.
    """
    same = (
        (cells[1:] == cells[:-1]).all(1)
        & (boxes[1:] == boxes[:-1]).all(1)
        & (origins[1:] == origins[:-1]).all(1)
    )
    starts = np.flatnonzero(np.concatenate([[True], ~same])) if len(cells) else np.zeros(0, int)
    lengths = np.diff(np.append(starts, len(cells)))
    many = [(s, n) for s, n in zip(starts.tolist(), lengths.tolist(), strict=True) if 1 < n <= 4]
    backward = {s for s, n in many if n == 2 and text[s] == _LAM and text[s + 1] in _ALEFS}

    def split(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        for start, length in many:
            step = -1 if start in backward else 1
            if array.shape[1] == 2:
                share = np.arange(length) * ((cells[start, 2] - cells[start, 0]) / length)
                array[start : start + length, 0] += share[::step]
            else:
                edges = np.linspace(array[start, 0], array[start, 2], length + 1)
                array[start : start + length, 0] = edges[:-1][::step]
                array[start : start + length, 2] = edges[1:][::step]
        return array

    return split


def _style(
    raw: ModuleType, handle: Handle, index: int, pointer: Handle | None, to_pixels: Matrix
) -> TextStyle:
    flags, buffer = ctypes.c_int(), ctypes.create_string_buffer(_USUAL_NAME)
    length = raw.FPDFText_GetFontInfo(handle, index, buffer, _USUAL_NAME, ctypes.byref(flags))
    if length > _USUAL_NAME:
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFText_GetFontInfo(handle, index, buffer, length, ctypes.byref(flags))
    name = buffer.value.decode("utf-8", "replace")
    if len(name) > 7 and name[6] == "+" and name[:6].isupper():  # a subset's tag
        name = name[7:]
    plain = name.lower()
    weight = raw.FPDFText_GetFontWeight(handle, index)
    # PDFium works the weight out of the stem, which many fonts do not give; the name then tells it.
    if any(word in plain for word in ("bold", "black", "heavy", "cmbx")) or plain.endswith("-bd"):
        weight = max(weight, 700)
    elif not 100 <= weight <= 1000:
        weight = 400
    elif not flags.value & 0x40000:
        weight = min(weight, 500)
    matrix = raw.FS_MATRIX()
    turned = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    if raw.FPDFText_GetMatrix(handle, index, ctypes.byref(matrix)):
        turned = (matrix.a, matrix.b, matrix.c, matrix.d, 0.0, 0.0)
    a, b, c, d, _, _ = multiply(turned, (*to_pixels[:4], 0.0, 0.0))
    size = raw.FPDFText_GetFontSize(handle, index)
    if size < 0:  # which turns the letters, and the way they run, by half a turn
        a, b = -a, -b
    size = abs(size) * math.hypot(c, d)
    angle = math.degrees(math.atan2(b, a)) if math.isfinite(a + b) else 0.0
    mode = raw.FPDFTextObj_GetTextRenderMode(pointer) if pointer else 0
    colored = raw.FPDFPageObj_GetStrokeColor if mode in _OUTLINED else raw.FPDFPageObj_GetFillColor
    color = (_color(colored, pointer) if pointer else None) or (0, 0, 0, 255)
    italic = bool(flags.value & 0x40) or "italic" in plain or "oblique" in plain
    size = round(size, 3) if math.isfinite(size) else 0.0
    mono = bool(flags.value & 1) or any(word in plain for word in _MONO)
    return TextStyle(name, size, int(weight), italic, round(angle, 1) % 360, mode in _INVISIBLE, color, mono)


def _color(function: Callable[..., int], pointer: Handle) -> Color | None:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not function(pointer, *map(ctypes.byref, (red, green, blue, alpha))):
        return None
    return red.value, green.value, blue.value, alpha.value


def _read_objects(
    page: PdfPage, to_pixels: Matrix, layers: bool, warnings: list[str]
) -> tuple[tuple[PagePath, ...], np.ndarray, Drawings]:
    import pypdfium2.raw as raw

    paths: list[PagePath] = []
    images: list[np.ndarray] = []
    drawings = Drawings()
    budget = MAX_SEGMENTS
    matrix = raw.FS_MATRIX()

    def visit(count: int, get: Callable[[int], Handle], to_page: Matrix, depth: int, doubtful: bool) -> None:
        nonlocal budget
        for index in range(count):
            pointer = get(index)
            if not pointer or budget <= 0:
                continue
            kind = raw.FPDFPageObj_GetType(pointer)
            drawings.next()
            if kind == raw.FPDF_PAGEOBJ_TEXT:
                in_layer = doubtful or is_in_layer(pointer)
                drawings.add_text(pointer, in_layer, None if in_layer else _clip_box(raw, pointer, to_page))
                continue
            if kind not in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM):
                continue
            if not raw.FPDFPageObj_GetMatrix(pointer, ctypes.byref(matrix)):
                continue
            own = multiply((matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f), to_page)
            if not all(map(math.isfinite, own)):
                continue
            if kind == raw.FPDF_PAGEOBJ_PATH:
                budget -= raw.FPDFPath_CountSegments(pointer) + 1
                if (path := _path(raw, pointer, own)) is not None:
                    if path.fill is not None:
                        path = _clipped(path, _clip_box(raw, pointer, to_page))
                    paths.append(path)
                    if path.fill is not None:
                        drawings.add_fill(path.rectangles, path.bbox, path.fill)
            elif kind == raw.FPDF_PAGEOBJ_IMAGE:
                images.append(apply_boxes(own, np.array([[0.0, 0.0, 1.0, 1.0]]))[0])
                drawings.add_image(images[-1])
            elif depth < MAX_DEPTH:
                visit(
                    max(raw.FPDFFormObj_CountObjects(pointer), 0),
                    lambda at, form=pointer: raw.FPDFFormObj_GetObject(form, at),
                    own,
                    depth + 1,
                    doubtful
                    or layers
                    or raw.FPDFPageObj_HasTransparency(pointer) == 1
                    or is_in_layer(pointer),
                )

    visit(
        max(raw.FPDFPage_CountObjects(page.raw), 0),
        lambda at: raw.FPDFPage_GetObject(page.raw, at),
        to_pixels,
        0,
        False,
    )
    if budget <= 0:
        warnings.append(f"only the first {MAX_SEGMENTS:,} pieces of the page's drawings are read")
    return tuple(paths), np.array(images).reshape(-1, 4), drawings


def _path(raw: ModuleType, pointer: Handle, to_pixels: Matrix) -> PagePath | None:
    fill_mode, stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(pointer, ctypes.byref(fill_mode), ctypes.byref(stroked))
    if not fill_mode.value and not stroked.value:  # it only clips
        return None
    count = min(raw.FPDFPath_CountSegments(pointer), MAX_SEGMENTS)
    x, y = ctypes.c_float(), ctypes.c_float()
    at_x, at_y = ctypes.byref(x), ctypes.byref(y)
    subpaths: list[list[tuple[float, float]]] = []
    segments: list[tuple[float, float, float, float]] = []
    bent: set[int] = set()  # the subpaths with curves
    now: tuple[float, float] = (0.0, 0.0)
    for i in range(count):
        segment = raw.FPDFPath_GetPathSegment(pointer, i)
        kind = raw.FPDFPathSegment_GetType(segment)
        raw.FPDFPathSegment_GetPoint(segment, at_x, at_y)
        point = (x.value, y.value)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            subpaths.append([point])
        else:
            if kind == raw.FPDF_SEGMENT_LINETO:
                segments.append((*now, *point))
            else:
                bent.add(len(subpaths) - 1)
            if subpaths:
                subpaths[-1].append(point)
        now = point
        if raw.FPDFPathSegment_GetClose(segment) and subpaths and now != subpaths[-1][0]:
            segments.append((*now, *subpaths[-1][0]))
            now = subpaths[-1][0]
    straight = apply(to_pixels, np.array(segments, np.float64).reshape(-1, 2, 2)).reshape(-1, 4)
    straight = straight[np.isfinite(straight).all(1) & (np.abs(straight) < 1e6).all(1)]
    rectangles = [box for points in subpaths if not bent and (box := _rectangle(points, to_pixels))]
    width = ctypes.c_float()
    raw.FPDFPageObj_GetStrokeWidth(pointer, ctypes.byref(width))
    scale = math.sqrt(abs(to_pixels[0] * to_pixels[3] - to_pixels[1] * to_pixels[2]))
    return PagePath(
        straight,
        np.array(rectangles, np.float64).reshape(-1, 4),
        _color(raw.FPDFPageObj_GetStrokeColor, pointer) if stroked.value else None,
        _color(raw.FPDFPageObj_GetFillColor, pointer) if fill_mode.value else None,
        width.value * scale if stroked.value else 0.0,
        raw.FPDFPageObj_GetDashCount(pointer) > 0,
        bool(bent),
        _boxes([subpaths[n] for n in sorted(bent) if n >= 0], to_pixels),
        _box([point for points in subpaths for point in points], to_pixels),
    )


def _clip_box(
    raw: ModuleType, pointer: Handle, to_pixels: Matrix
) -> tuple[float, float, float, float] | None:
    """The box outside of which nothing of an object is drawn; None where it is not clipped."""
    clip = raw.FPDFPageObj_GetClipPath(pointer)
    count = raw.FPDFClipPath_CountPaths(clip) if clip else 0
    if not count:
        return None
    x, y = ctypes.c_float(), ctypes.c_float()
    at_x, at_y = ctypes.byref(x), ctypes.byref(y)
    boxes = []
    for number in range(min(count, MAX_CLIPS)):
        points = []
        for index in range(min(raw.FPDFClipPath_CountPathSegments(clip, number), MAX_SEGMENTS)):
            raw.FPDFPathSegment_GetPoint(raw.FPDFClipPath_GetPathSegment(clip, number, index), at_x, at_y)
            points.append((x.value, y.value))
        if points:
            boxes.append(_box(points, to_pixels))
    if not boxes:
        return None
    left, top, right, bottom = zip(*boxes, strict=True)
    return max(left), max(top), min(right), min(bottom)


def _clipped(path: PagePath, clip: tuple[float, float, float, float] | None) -> PagePath:
    """What of a filled path lies in a box: a border that is drawn as a frame within a strip is a line."""
    if clip is None:
        return path
    corners = [*clip[:2], *clip[:2]], [*clip[2:], *clip[2:]]
    rectangles = np.clip(path.rectangles, *corners)
    drawn = (rectangles[:, 2:] - rectangles[:, :2] > LEAST_SIDE).all(1)
    left, top, right, bottom = np.clip(path.bbox, *corners).tolist()
    return replace(path, rectangles=rectangles[drawn], bbox=(left, top, right, bottom))


def _boxes(subpaths: list[list[tuple[float, float]]], to_pixels: Matrix) -> np.ndarray:
    return np.array([_box(points, to_pixels) for points in subpaths], np.float64).reshape(-1, 4)


def _box(points: list[tuple[float, float]], to_pixels: Matrix) -> tuple[float, float, float, float]:
    """The box around points; one without size at the origin where they are none that can be drawn."""
    a, b, c, d, e, f = to_pixels
    xs = [a * x + c * y + e for x, y in points]
    ys = [b * x + d * y + f for x, y in points]
    if not points or not all(-1e6 <= value <= 1e6 for value in (*xs, *ys)):
        return (0.0, 0.0, 0.0, 0.0)
    return min(xs), min(ys), max(xs), max(ys)


def _rectangle(points: list[tuple[float, float]], to_pixels: Matrix) -> tuple[float, ...] | None:
    if len(points) == 5 and points[0] == points[4]:
        points = points[:4]
    if len(points) != 4:
        return None
    # Without arrays, which take longer for the four corners of each of a page's thousands of rectangles.
    a, b, c, d, e, f = to_pixels
    xs = [a * x + c * y + e for x, y in points]
    ys = [b * x + d * y + f for x, y in points]
    if not all(-1e6 <= value <= 1e6 for value in (*xs, *ys)):
        return None
    left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    on_side = all(x - left < 0.1 or right - x < 0.1 for x in xs)
    return (
        (left, top, right, bottom) if on_side and all(y - top < 0.1 or bottom - y < 0.1 for y in ys) else None
    )
