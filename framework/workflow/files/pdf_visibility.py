"""Which characters of a PDF page nobody can see: of the colour of their ground, clear, below what is drawn later, cut
off by a clip path, or in a layer (optional content) that is switched off.

What might be so is told by colours and the order of drawing; that alone is then rendered with and without its text, and
a character that changes no pixel is one that is not seen. Where the installed PDFium cannot leave text out, a character
without any contrast in its box is.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

    from framework.workflow.files.pdf_content import Color, PageText
    from framework.workflow.files.pdf_handles import Handle

CLEAR = 13  # of 255: an alpha up to this cannot be seen
LOW_CONTRAST = 26  # of 255: a colour nearer to its ground may be invisible
SEEN = 14  # of 255: what a pixel must change by
LIGHT = 190  # of 255: text of such a colour over an image is looked at
MOST_MARKS = 20  # of one object
MOST_COVERS = 400  # of a page: the largest that are drawn over text
SCALE = 2.0  # pixels a point


class Drawings:
    """Fills, images and texts of a page in the order in which they are drawn, which `next` counts."""

    def __init__(self) -> None:
        self._now = 0
        self.texts: dict[int | None, int] = {}  # by address
        self.doubtful: set[int | None] = set()
        self.clips: dict[int | None, tuple[float, ...]] = {}
        self._boxes: list[np.ndarray] = []
        self._orders: list[int] = []
        self._colors: list[tuple[int, int, int, int]] = []

    def next(self) -> None:
        """Go on to the next object."""
        self._now += 1

    def add_text(self, pointer: Handle, doubtful: bool, clip: tuple[float, ...] | None) -> None:
        """The object is a text; `doubtful` says that it stands in a group that may be clear, or in a layer that may be
        switched off; outside of `clip`, where that is known, nothing of it is drawn.
        """
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        self.texts[address] = self._now
        if doubtful:
            self.doubtful.add(address)
        if clip is not None:
            self.clips[address] = clip

    def add_fill(self, rectangles: np.ndarray, bbox: tuple[float, ...], color: Color) -> None:
        """The object fills rectangles [R, 4], or where it has none something of the box."""
        for box in rectangles if len(rectangles) else np.array([bbox]):
            self._add(box, color)

    def add_image(self, box: np.ndarray) -> None:
        """The object is an image."""
        self._add(box, (-1, -1, -1, 255))

    def _add(self, box: np.ndarray, color: tuple[int, int, int, int]) -> None:
        self._boxes.append(box)
        self._orders.append(self._now)
        self._colors.append(color)

    def grounds(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Boxes [G, 4], orders [G] and colours [G, 4] of what text may stand on or below: at least `least` pixels wide
        and high, the largest MOST_COVERS in their order. Images have the colour -1.
        """
        boxes = np.array(self._boxes, np.float64).reshape(-1, 4)
        sizes = boxes[:, 2:] - boxes[:, :2]
        at = np.flatnonzero((sizes >= least).all(1))
        if len(at) > MOST_COVERS:
            at = np.sort(at[np.argsort(-sizes[at].prod(1), kind="stable")[:MOST_COVERS]])
        return boxes[at], np.array(self._orders, int)[at], np.array(self._colors, int).reshape(-1, 4)[at]


def is_in_layer(pointer: Handle) -> bool:
    """Whether an object stands in marked content that may be switched off (ISO 32000-1, 8.11)."""
    import pypdfium2.raw as raw

    count = raw.FPDFPageObj_CountMarks(pointer)
    if count <= 0:
        return False
    name, size = (ctypes.c_ushort * 8)(), ctypes.c_ulong()
    for number in range(min(count, MOST_MARKS)):
        mark = raw.FPDFPageObj_GetMark(pointer, number)
        has_name = raw.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), ctypes.byref(size))
        # UTF-16, with its end; longer names do not fit and are others.
        if has_name and bytes(name)[: size.value] == "OC\0".encode("utf-16-le"):
            return True
    return False


def unseen_chars(
    page: PdfPage,
    text: PageText,
    pointers: list[Handle],
    drawings: Drawings,
    size: tuple[int, int],
    scale: float,
) -> np.ndarray:
    """Which characters [N] nobody can see, though they are filled or stroked.

    Args:
        page: The open pypdfium2 page.
        pointers: To the text objects, by their numbers.
        drawings: In pixels of the page.
        size: (width, height) of the page in pixels.
        scale: Pixels a point.
    """
    count = len(text.text)
    if not count:
        return np.zeros(0, bool)
    colors = np.array([style.color for style in text.styles], int).reshape(-1, 4)[text.style]
    invisible = np.array([style.invisible for style in text.styles], bool)[text.style]
    clear = ~invisible & (colors[:, 3] <= CLEAR)
    suspected = _suspected(text, pointers, drawings, colors, size, scale) & ~invisible & ~clear
    suspected &= text.objects >= 0
    suspected &= np.array([bool(char.strip()) for char in text.text])
    if not suspected.any():
        return clear
    return clear | _changes_nothing(page, text, pointers, suspected, size, scale)


def _suspected(
    text: PageText,
    pointers: list[Handle],
    drawings: Drawings,
    colors: np.ndarray,
    size: tuple[int, int],
    scale: float,
) -> np.ndarray:
    """What stands on a ground of about its own colour, is light on an image, drawn over, cut off, or in a layer."""
    boxes, orders, fills = drawings.grounds(2.0 * scale)
    ground = np.full((len(colors), 3), 255)
    covered = np.zeros(len(colors), bool)
    addresses = [ctypes.cast(pointer, ctypes.c_void_p).value for pointer in pointers]
    if drawings.doubtful:
        covered |= np.array([address in drawings.doubtful for address in addresses] + [False])[text.objects]
    if drawings.clips:
        everywhere = (-np.inf, -np.inf, np.inf, np.inf)
        clips = np.array([*(drawings.clips.get(address, everywhere) for address in addresses), everywhere])
        clip = clips[text.objects]
        middle = (text.boxes[:, :2] + text.boxes[:, 2:]) / 2
        covered |= ((middle <= clip[:, :2]) | (middle >= clip[:, 2:])).any(1)
    if len(boxes):
        drawn = np.array([drawings.texts.get(address, 0) for address in addresses] + [0])[text.objects]
        x = (text.boxes[:, 0] + text.boxes[:, 2]) / 2
        y = (text.boxes[:, 1] + text.boxes[:, 3]) / 2
        for box, order, fill in zip(boxes.tolist(), orders.tolist(), fills, strict=True):
            inside = (x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])
            ground[inside & (drawn > order)] = fill[:3]
            if fill[3] > 128:
                covered |= inside & (drawn < order)
    over_image = ground[:, 0] < 0
    near = np.abs(ground - colors[:, :3]).max(1) < LOW_CONTRAST
    width, height = size
    on_page = (text.boxes[:, 2] > 0) & (text.boxes[:, 3] > 0)
    on_page &= (text.boxes[:, 0] < width) & (text.boxes[:, 1] < height)
    faint = colors[:, 3] < 26
    return on_page & (covered | faint | np.where(over_image, colors[:, :3].min(1) > LIGHT, near))


def _changes_nothing(
    page: PdfPage,
    text: PageText,
    pointers: list[Handle],
    suspected: np.ndarray,
    size: tuple[int, int],
    scale: float,
) -> np.ndarray:
    """Which of the suspected characters change no pixel of the rendered page."""
    import pypdfium2.raw as raw

    boxes = text.boxes[suspected] / scale  # points, from the upper left corner
    width, height = size[0] / scale, size[1] / scale
    left, top = np.maximum(np.floor(boxes[:, :2].min(0)) - 1, 0).tolist()
    right = min(float(np.ceil(boxes[:, 2].max())) + 1, width)
    bottom = min(float(np.ceil(boxes[:, 3].max())) + 1, height)
    scale = min(SCALE, 4000.0 / max(right - left, bottom - top, 1.0))

    def render() -> np.ndarray:
        crop = (left, height - bottom, width - right, top)
        bitmap = page.render(scale=scale, crop=crop, may_draw_forms=False)  # type: ignore[arg-type]
        try:
            return bitmap.to_numpy()[:, :, :3].astype(np.int16)
        finally:
            bitmap.close()

    shown = render()
    objects = [pointers[number] for number in np.unique(text.objects[suspected]).tolist()]
    can_hide = hasattr(raw, "FPDFPageObj_SetIsActive")
    if can_hide:
        for pointer in objects:
            raw.FPDFPageObj_SetIsActive(pointer, False)
        try:
            change = np.abs(shown - render()).max(2)
        finally:
            for pointer in objects:
                raw.FPDFPageObj_SetIsActive(pointer, True)
    else:
        change = shown.min(2)
    unseen = np.zeros(len(suspected), bool)
    for at, box in zip(np.flatnonzero(suspected).tolist(), boxes, strict=True):
        x0, x1 = int((box[0] - left) * scale), int(np.ceil((box[2] - left) * scale)) + 1
        y0, y1 = int((box[1] - top) * scale), int(np.ceil((box[3] - top) * scale)) + 1
        inside = change[max(y0, 0) : y1, max(x0, 0) : x1]
        if inside.size:
            unseen[at] = (inside.max() if can_hide else inside.max() - inside.min()) < SEEN
    return unseen
