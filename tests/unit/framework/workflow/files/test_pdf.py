"""framework.workflow.files.pdf: pages by hand-made documents, sizes, every bad document."""

import sys
import threading

import numpy as np
import pytest

from framework.core.errors import InputError, MissingExtraError
from framework.workflow.files.pdf import PdfReader

pytest.importorskip("pypdfium2")

RED_LEFT_HALF = b"1 0 0 rg 0 0 36 144 re f"  # a page 72 x 144 points, its left half red


def document(*pages: tuple[str, bytes], extra: bytes = b"") -> bytes:
    """A PDF of (page entries, content) pairs."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    kids = []
    for entries, content in pages:
        kids.append(b"%d 0 R" % (len(objects) + 1))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/Contents %d 0 R%s>>" % (len(objects) + 2, entries.encode())
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    out, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        extra,
        len(out),
    )
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer


TURNS = ("/MediaBox[0 0 72.3 144.9]", "/MediaBox[0 0 72.3 144.9]/Rotate 90")
TWO = document(("/MediaBox[0 0 72 144]", RED_LEFT_HALF), ("/MediaBox[0 0 72 144]/Rotate 90", RED_LEFT_HALF))


def test_pages(tmp_path):
    path = tmp_path / "документ 文.pdf"
    path.write_bytes(TWO)
    with PdfReader(path, dpi=100) as reader:
        assert len(reader) == 2
        assert reader.page_size_hw(0) == (144, 72) and reader.page_size_hw(1) == (72, 144)
        upright, turned = reader
    assert upright.shape == (200, 100, 3) and upright.dtype == np.uint8 and upright.flags.c_contiguous
    assert upright[100, 20].tolist() == [255, 0, 0] and upright[100, 80].tolist() == [255, 255, 255]
    assert turned.shape == (100, 200, 3)
    assert turned[20, 100].tolist() == [255, 0, 0] and turned[80, 100].tolist() == [255, 255, 255]


def test_index_and_resolution():
    with PdfReader(TWO, dpi=36) as reader:
        assert reader[0].shape == (72, 36, 3) and reader[-1].shape == (36, 72, 3)
        for index in (2, -3):
            with pytest.raises(IndexError, match="there is no page"):
                reader[index]
    with PdfReader(TWO) as reader:
        assert reader[0].shape == (400, 200, 3)


def test_form_fields_are_drawn():
    appearance = b"0 0 1 rg 0 0 72 144 re f"
    stream = b"<</Type/XObject/Subtype/Form/BBox[0 0 72 144]/Length %d>>stream\n%s\nendstream" % (
        len(appearance),
        appearance,
    )
    pages = document(("/MediaBox[0 0 72 144]/Annots[6 0 R]", b" "))
    # Three more objects by an incremental update: the appearance, the field and the catalog with a form.
    objects = {
        5: stream,
        6: b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/F 4/Rect[0 0 72 144]/AP<</N 5 0 R>>>>",
        1: b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[6 0 R]>>>>",
    }
    previous = pages.rindex(b"xref\n0")
    table = b""
    for number, body in objects.items():
        table += b"%d 1\n%010d 00000 n \n" % (number, len(pages) + 1)
        pages += b"\n%d 0 obj\n%s\nendobj" % (number, body)
    pages += b"\nxref\n%strailer\n<</Size 7/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        previous,
        len(pages) + 1,
    )
    with PdfReader(pages, dpi=72) as reader:
        assert reader[0][70, 30, 2] == 255 and reader[0][70, 30, 0] < 255


def test_document_errors(tmp_path):
    (tmp_path / "empty.pdf").write_bytes(b"")
    encrypted = document(
        ("/MediaBox[0 0 72 72]", b" "),
        extra=b"/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]/Encrypt<</Filter/Standard"
        b"/V 1/R 2/P -44/O<" + b"11" * 32 + b">/U<" + b"22" * 32 + b">>>",
    )
    for source, message in (
        (tmp_path / "gone.pdf", "there is no such PDF file"),
        (tmp_path, "a folder, not one PDF"),
        (tmp_path / "empty.pdf", r"empty\.pdf: the PDF is empty"),
        (b"plain text", "<bytes>: this is no PDF that can be read"),
        (document(), "this is no PDF that can be read"),
        (encrypted, "the PDF is encrypted"),
        (12, "the PDF must be a path"),
    ):
        with pytest.raises(InputError, match=message):
            PdfReader(source)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="cannot be rendered at this resolution"):
        PdfReader(TWO, dpi=0)


def test_document_without_pages(monkeypatch):
    """The PDFium of today refuses such a document by itself; another may not."""
    import pypdfium2

    monkeypatch.setattr(pypdfium2.PdfDocument, "__len__", lambda self: 0)
    with pytest.raises(InputError, match="the PDF has no pages"):
        PdfReader(TWO)


def test_pixel_limit():
    huge = document(("/MediaBox[0 0 14400 14400]", b" "))
    with pytest.raises(InputError, match=r"page 0: the page has too many pixels[\s\S]*render at 70 dpi"):
        PdfReader(huge)[0]
    with PdfReader(TWO, dpi=72, max_pixels=1000) as reader, pytest.raises(InputError, match="at most 1,000"):
        reader[1]


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("dpi", [61.0, 150.0])
def test_a_part_of_a_page(page, dpi):
    """The part has the pixels that it has in the whole, and only they count for the limit."""
    with PdfReader(
        document(*[(entries, b"1 0 0 rg 3 5 31.7 96.2 re f") for entries in TURNS]), dpi=dpi
    ) as reader:
        whole = reader[page]
        height, width = whole.shape[:2]
        for left, top, right, bottom in ((0, 0, 7, 9), (11, 13, 41, 29), (width - 5, 3, width, height)):
            part = reader.render(page, box=(left, top, right, bottom))
            assert np.array_equal(part, whole[top:bottom, left:right]) and part.flags.c_contiguous
        beyond = reader.render(page, box=(-4, height - 6, 8, height + 30))
        assert np.array_equal(beyond, whole[height - 6 :, :8])
        with pytest.raises(InputError, match="outside of the page"):
            reader.render(page, box=(width, 0, width + 5, 5))
    with PdfReader(TWO, dpi=72, max_pixels=1000) as reader:
        assert reader.render(0, box=(0, 0, 20, 20)).shape == (20, 20, 3)


def test_damaged_page():
    broken = TWO.replace(b"/Kids[3 0 R 5 0 R]", b"/Kids[3 0 R 9 0 R]")
    assert broken != TWO
    with PdfReader(broken, dpi=20) as reader:
        assert reader[0].shape[2] == 3
        with pytest.raises(InputError, match="this is no PDF that can be read"):
            reader[1]


def test_closed():
    reader = PdfReader(TWO)
    reader.close()
    reader.close()
    with pytest.raises(InputError, match="the PDF is closed"):
        reader[0]


def test_several_threads():
    results: list[np.ndarray] = []

    def work():
        with PdfReader(TWO, dpi=50) as reader:
            results.extend(reader)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16
    for page in results:
        expected = (
            results[0]
            if page.shape == results[0].shape
            else next(r for r in results if r.shape == page.shape)
        )
        np.testing.assert_array_equal(page, expected)


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[ocr\]"):
        PdfReader(TWO)
