"""What is read of a page's characters in blocks is what PDFium says of each when it is asked with its own functions."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from framework.workflow.files import pdf_chars
from framework.workflow.files.pdf_content import _code_points

pdfium = pytest.importorskip("pypdfium2")

ROWS = 60  # of 46 characters: several blocks, the last of which is not full


def document() -> bytes:
    rows = [
        f"1 0 0 1 40 {800 - 13 * i} Tm (Row {i:02} has -some letters- and 1,234.50 EUR.) Tj"
        for i in range(ROWS)
    ]
    content = " ".join(["BT /F 9 Tf", *rows, "ET"]).encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    bodies = [b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(objects, 1)]
    return b"%PDF-1.7\n" + b"".join(bodies) + b"trailer\n<</Size 6/Root 1 0 R>>\n%%EOF"


def test_blocks_hold_what_pdfium_says_of_each_character() -> None:
    raw = pdfium.raw
    page = pdfium.PdfDocument(document())[0]
    text = page.get_textpage()
    count = raw.FPDFText_CountChars(text.raw)
    assert count > 2 * pdf_chars.BLOCK and count % pdf_chars.BLOCK
    first = pdf_chars.read_char_values(text.raw, count)
    again = pdf_chars.read_char_values(text.raw, count)  # in the memory of the first ones
    boxes, origins, loose = [], [], []
    for number in range(count):
        left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
        raw.FPDFText_GetCharBox(text.raw, number, left, right, bottom, top)
        raw.FPDFText_GetCharOrigin(text.raw, number, x, y)
        rectangle = raw.FS_RECTF()
        raw.FPDFText_GetLooseCharBox(text.raw, number, rectangle)
        boxes.append((left.value, bottom.value, right.value, top.value))
        origins.append((x.value, y.value))
        loose.append((rectangle.left, rectangle.top, rectangle.right, rectangle.bottom))
    for values in (first, again):
        np.testing.assert_array_equal(values.ink, boxes)
        np.testing.assert_array_equal(values.origins, origins)
        np.testing.assert_array_equal(values.loose, np.array(loose, np.float32))
        assert values.codes == [raw.FPDFText_GetUnicode(text.raw, i) for i in range(count)]
        assert values.has_ink.all() and not any(values.unmapped)
    objects = {first.codes[i]: first.objects[i] for i in range(count)}
    assert objects[ord("R")] and len(set(first.objects) - {None}) == ROWS
    numbers = list(range(100))
    generated = [raw.FPDFText_IsGenerated(text.raw, i) == 1 for i in numbers]
    assert pdf_chars.which_generated(text.raw, numbers) == generated and True in generated


def test_pairs_of_utf_16_are_one_character() -> None:
    units = [0x41, 0xD83D, 0xDE00, 0xD83D, 0x42, 0xDE00]
    assert _code_points(units) == [0x41, 0, 0x1F600, 0, 0x42, 0xDE00]
