"""What a PDF page's annotations say: links, fields of forms with their values, text that was typed or stamped on the
page, and strike-outs. All boxes are pixels of the rendered page.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal

import numpy as np

from framework.workflow.files.pdf_appearances import draws_text, read_appearances
from framework.workflow.files.pdf_handles import Handle
from framework.workflow.files.pdf_matrix import Matrix, apply_boxes

if TYPE_CHECKING:
    from pypdfium2 import PdfFormEnv, PdfPage

MAX_ANNOTATIONS = 5_000  # of a page; the longest forms have some hundred
MAX_TEXT = 100_000  # bytes of a value
NOTE_CHARS = 60  # of a note that a warning names
_HIDDEN = 0x02 | 0x20  # flags: hidden, not shown on the screen (ISO 32000-1, table 165)
_PASSWORD, _MULTILINE = 0x2000, 0x1000  # flags of text fields (table 228)
_WIDGETS = {2: "check_box", 3: "radio_button", 4: "choice", 5: "choice", 6: "text"}  # of PDFium's field types

FieldKind = Literal["text", "choice", "check_box", "radio_button", "free_text"]


@dataclass(frozen=True, eq=False)
class PageLink:
    """An address behind boxes [B, 4] of the page."""

    address: str
    boxes: np.ndarray


@dataclass(frozen=True)
class FormField:
    """A field of a form, or text that was typed or stamped on the page ("free_text").

    Attributes:
        name: The field's full name, "" of text that was typed or stamped on the page.
        label: What the form shows in place of the name, "" where it gives nothing.
        value: What was filled in, lines apart by newlines; of check boxes and radio buttons what they stand for.
        box: Where it stands.
        size: Of its type in pixels; 0 where the form leaves it to the viewer.
        checked: Whether a check box or radio button is on.
    """

    kind: FieldKind
    name: str
    label: str
    value: str
    box: tuple[float, float, float, float]
    size: float = 0.0
    checked: bool = False


@dataclass(frozen=True)
class Annotations:
    """`strikes` [S, 4] are boxes of struck-out text."""

    links: tuple[PageLink, ...] = ()
    fields: tuple[FormField, ...] = ()
    strikes: tuple[tuple[float, float, float, float], ...] = ()


def read_annotations(
    page: PdfPage, page_index: int, to_pixels: Matrix, form: PdfFormEnv | None, warnings: list[str]
) -> Annotations:
    """The annotations of an open pypdfium2 page. The caller holds PDFium's lock.

    Args:
        page_index: The place of the page in its document.
        form: pypdfium2's form environment of the document; None where it has no form.
        warnings: Takes what was left out.
    """
    import pypdfium2.raw as raw

    count = max(raw.FPDFPage_GetAnnotCount(page.raw), 0)
    if not count:
        return Annotations()
    if count > MAX_ANNOTATIONS:
        warnings.append(f"only the first {MAX_ANNOTATIONS:,} of {count:,} annotations are read")
    links: list[PageLink] = []
    fields: list[FormField] = []
    strikes: list[tuple[float, float, float, float]] = []
    notes: list[str] = []
    # Boxes of those whose text their appearances alone have.
    drawn: dict[int, tuple[float, float, float, float]] = {}
    for index in range(min(count, MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
                continue
            if kind == raw.FPDF_ANNOT_LINK:
                address = _address(raw, page.pdf.raw, annotation)
                if address:
                    links.append(PageLink(address, _areas(raw, annotation, to_pixels)))
            elif kind == raw.FPDF_ANNOT_STRIKEOUT:
                strikes += [tuple(box) for box in _areas(raw, annotation, to_pixels).tolist()]
            elif kind == raw.FPDF_ANNOT_FREETEXT:
                value = _text(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
                box = _areas(raw, annotation, to_pixels, quads=False)
                if value.strip() and len(box):
                    fields.append(FormField("free_text", "", "", value, tuple(box[0].tolist())))
                elif len(box) and draws_text(annotation):
                    drawn[index] = tuple(box[0].tolist())
            elif kind == raw.FPDF_ANNOT_STAMP and draws_text(annotation):
                box = _areas(raw, annotation, to_pixels, quads=False)
                if len(box):
                    drawn[index] = tuple(box[0].tolist())
            elif kind == raw.FPDF_ANNOT_WIDGET and form is not None:
                made = _widget(raw, form.raw, annotation, to_pixels)
                if made is not None:
                    fields.append(made)
            elif kind in (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_CARET, raw.FPDF_ANNOT_HIGHLIGHT):
                note = " ".join(_text(raw.FPDFAnnot_GetStringValue, annotation, b"Contents").split())
                notes += [note] if note else []
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    if drawn:
        texts = read_appearances(page, page_index, drawn, warnings)
        for index, box in drawn.items():
            if value := texts.get(index):
                fields.append(FormField("free_text", "", "", value, box))
    if notes:  # a reader's program shows them beside the page, when they are asked for
        first = notes[0] if len(notes[0]) <= NOTE_CHARS else notes[0][:NOTE_CHARS] + "…"
        warnings.append(f"notes of readers are not read as text: {len(notes):,}, the first of them {first!r}")
    return Annotations(tuple(links), tuple(fields), tuple(strikes))


def _widget(raw: ModuleType, form: Handle, annotation: Handle, to_pixels: Matrix) -> FormField | None:
    kind = _WIDGETS.get(raw.FPDFAnnot_GetFormFieldType(form, annotation))
    box = _areas(raw, annotation, to_pixels, quads=False)
    if kind is None or not len(box):
        return None
    name = _text(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    label = _text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    checked = False
    if kind in ("check_box", "radio_button"):
        checked = bool(raw.FPDFAnnot_IsChecked(form, annotation))
        value = _text(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation)
    elif kind == "choice":
        options = range(min(max(raw.FPDFAnnot_GetOptionCount(form, annotation), 0), MAX_ANNOTATIONS))
        chosen = [
            _text(raw.FPDFAnnot_GetOptionLabel, form, annotation, n)
            for n in options
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, n)
        ]
        value = "\n".join(chosen) or _text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    else:
        value = _text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            value = "*" * len(value)  # as viewers show it
    size = ctypes.c_float()
    scale = abs(to_pixels[0] * to_pixels[3] - to_pixels[1] * to_pixels[2]) ** 0.5
    known = raw.FPDFAnnot_GetFontSize(form, annotation, ctypes.byref(size))
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    made = FormField(
        kind,  # type: ignore[arg-type]
        name,
        label,
        value,
        tuple(box[0].tolist()),  # type: ignore[arg-type]
        size.value * scale if known and 0 < size.value < 1e4 else 0.0,
        checked,
    )
    return made


def _areas(raw: ModuleType, annotation: Handle, to_pixels: Matrix, *, quads: bool = True) -> np.ndarray:
    """The boxes [B, 4] of an annotation: its quadrilaterals, or its rectangle where it has none."""
    found: list[tuple[float, float, float, float]] = []
    if quads and raw.FPDFAnnot_HasAttachmentPoints(annotation):
        corners = raw.FS_QUADPOINTSF()
        for index in range(min(raw.FPDFAnnot_CountAttachmentPoints(annotation), MAX_ANNOTATIONS)):
            if raw.FPDFAnnot_GetAttachmentPoints(annotation, index, ctypes.byref(corners)):
                xs = [getattr(corners, f"x{n}") for n in (1, 2, 3, 4)]
                ys = [getattr(corners, f"y{n}") for n in (1, 2, 3, 4)]
                found.append((min(xs), min(ys), max(xs), max(ys)))
    rectangle = raw.FS_RECTF()
    if not found and raw.FPDFAnnot_GetRect(annotation, ctypes.byref(rectangle)):
        found.append((rectangle.left, rectangle.bottom, rectangle.right, rectangle.top))
    boxes = apply_boxes(to_pixels, np.array(found, np.float64).reshape(-1, 4))
    return boxes[np.isfinite(boxes).all(1) & (np.abs(boxes) < 1e6).all(1)]


def _address(raw: ModuleType, document: Handle, annotation: Handle) -> str:
    """The address of a link, "" where it leads to a page of the document or does something else."""
    link = raw.FPDFAnnot_GetLink(annotation)
    action = raw.FPDFLink_GetAction(link) if link else None
    if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return ""
    length = min(raw.FPDFAction_GetURIPath(document, action, None, 0), MAX_TEXT)
    buffer = ctypes.create_string_buffer(max(length, 1))
    raw.FPDFAction_GetURIPath(document, action, buffer, length)
    return "".join(buffer.value.decode("utf-8", "replace").split())


def _text(function: Callable[..., int], *arguments: Handle | bytes | int) -> str:
    """What a function of PDFium writes as UTF-16 into a buffer."""
    length = min(function(*arguments, None, 0), MAX_TEXT)
    if length <= 2:
        return ""
    buffer = ctypes.create_string_buffer(length)
    function(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
    return buffer.raw[:length].decode("utf-16-le", "replace").split("\0", 1)[0]
