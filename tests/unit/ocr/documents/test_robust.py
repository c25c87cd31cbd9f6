"""Documents that are damaged, encrypted, empty, long, large, turned, scanned or mixed: a clear error, or every page."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import HubError, InputError
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.sources import is_pdf_head
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader
from ocr.exporters._pdf import PdfFile
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Document, Line, Page
from tests.e2e.tools import REPO, run_tool
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf
from tests.unit.ocr.documents.test_reader import READ, no_ocr, table_page, two_columns


class FakeOCR:
    """A pipeline that finds one line, as wide as the image; or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sizes: list[tuple[int, int]] = []
        self.error = error

    def predict_stream(self, items):
        for item in items:
            height, width = item.image.shape[:2]
            self.sizes.append((width, height))
            if self.error is not None:
                raise self.error
            quad = ((0.0, 0.0), (width, 0.0), (width, 20.0), (0.0, 20.0))
            yield Page((Line("by ocr", 0.9, quad),), item.number, source=item.source, width=width, height=height,
                       image=item.image)  # fmt: skip


def reader(error: Exception | None = None, **more) -> tuple[DocumentReader, FakeOCR]:
    fake = FakeOCR(error)
    return DocumentReader(Lazy(lambda: OCRPredictor(fake, "fake")), **more), fake  # type: ignore[arg-type]


def pdf_of(
    media_box: str, content: bytes, resources: str = "", objects: tuple[tuple[str, bytes], ...] = ()
) -> bytes:
    """One page; `objects` are streams (entries, data) that come first, numbered from 1."""
    pdf = PdfFile()
    for entries, data in objects:
        pdf.add_stream(entries, data)
    tree = pdf.reserve()
    stream = pdf.add_stream("", content)
    page = pdf.add(
        f"<< /Type /Page /Parent {tree} 0 R /MediaBox {media_box} /Contents {stream} 0 R "
        f"/Resources << {resources} >> >>"
    )
    pdf.add(f"<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>", to=tree)
    root = pdf.add(f"<< /Type /Catalog /Pages {tree} 0 R >>")
    return pdf.to_bytes(root, pdf.add("<< >>"))


def jpeg(color: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (40, 30), color).save(buffer, "JPEG")
    return buffer.getvalue()


IMAGE = ("/Type /XObject /Subtype /Image /Width 40 /Height 30 /BitsPerComponent 8 /ColorSpace /DeviceGray "
         "/Filter /DCTDecode", jpeg(200))  # fmt: skip


def test_a_scan_is_read_by_ocr():
    read, fake = reader(dpi=72)
    found = read(pdf_of("[0 0 400 300]", b"400 0 0 300 0 0 cm /I Do", "/XObject << /I 1 0 R >>", (IMAGE,)))
    (page,) = found.pages
    assert (page.text_from, page.text, fake.sizes) == ("ocr", "by ocr", [(400, 300)])
    assert page.warnings == ("read by OCR: no text, but images",) and page.to_points is not None


def test_a_mixed_page_keeps_its_text_and_its_image():
    said = (
        b"BT /F 12 Tf 20 270 Td (A line of text that stands above the image of the page, long enough) Tj ET "
    )
    content = said + b"q 100 0 0 80 150 50 cm /I Do Q"
    fonts = "/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    found = READ(pdf_of("[0 0 400 300]", content, f"/XObject << /I 1 0 R >> {fonts}", (IMAGE,)))
    assert [(b.label, b.bbox) for b in found.pages[0].blocks][1] == (
        "image",
        pytest.approx((150, 170, 250, 250)),
    )
    image = found.pages[0].blocks[1].content.image  # type: ignore[union-attr]
    assert image is not None and image.shape == (80, 100, 3) and abs(int(image[40, 50, 0]) - 200) < 4


def test_fonts_without_a_unicode_map_are_read_by_ocr():
    """A CID font of glyph numbers alone: nobody can tell which characters these are."""
    fonts = (
        "/Font << /F << /Type /Font /Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts [<< /Type "
        "/Font /Subtype /CIDFontType2 /BaseFont /Odd /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        "/Supplement 0 >> /DW 600 >>] >> >>"
    )
    codes = "".join(f"{code:04x}" for code in range(1, 60)).encode()
    read, _ = reader(dpi=72)
    (page,) = read(pdf_of("[0 0 400 300]", b"BT /F 10 Tf 20 200 Td <" + codes + b"> Tj ET", fonts)).pages
    assert page.text == "by ocr" and "characters have no Unicode map" in page.warnings[0]


@pytest.mark.parametrize("cut", [0, 5, 40, 200])
def test_damaged_files(cut):
    data = make_pdf(two_columns())
    with pytest.raises(InputError, match=r"no PDF that can be read|cannot be|empty|no image"):
        READ(data[:cut])


def test_a_damaged_page_does_not_stop_the_others():
    data = make_pdf(*(PdfPage().text(50, 100, f"page {n}") for n in (1, 2, 3)))
    # The second page's object is no dictionary any more.
    places = [at for at in range(len(data)) if data.startswith(b"<< /Type /Page /", at)]
    broken = data[: places[1]] + b"(ab) /Typx /Page" + data[places[1] + 16 :]
    found = READ(broken)
    assert [page.page for page in found.pages] == [1, 2, 3]
    assert [page.text for page in found.pages] == ["page 1", "", "page 3"]
    assert found.pages[1].width == 0 and "no PDF that can be read" in found.pages[1].warnings[0]
    assert "page 1" in found.to_markdown() and "page 3" in found.to_markdown()
    assert Document.from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_errors_of_one_page_and_of_ocr_itself():
    scan = pdf_of("[0 0 400 300]", b"400 0 0 300 0 0 cm /I Do", "/XObject << /I 1 0 R >>", (IMAGE,))
    (page,) = reader(RuntimeError("out of memory"), dpi=72)[0](scan).pages
    assert page.width == 0 and page.warnings == ("RuntimeError: out of memory",)
    with pytest.raises(HubError):  # would come again on every page
        reader(HubError("no weights"), dpi=72)[0](scan)


def test_pages_with_and_without_text_in_one_document():
    """Each page is read as it needs; the places of all are in points of their own pages."""
    import pypdfium2

    scan = pdf_of("[0 0 400 300]", b"400 0 0 300 0 0 cm /I Do", "/XObject << /I 1 0 R >>", (IMAGE,))
    merged = pypdfium2.PdfDocument.new()
    for data in (make_pdf(table_page()), scan, make_pdf(two_columns(), rotate=90), scan):
        merged.import_pages(pypdfium2.PdfDocument(data))
    merged[3].set_rotation(270)
    buffer = io.BytesIO()
    merged.save(buffer)
    read, fake = reader(dpi=72)
    found = read(buffer.getvalue())
    assert [page.text_from for page in found.pages] == ["text-layer", "ocr", "text-layer", "ocr"]
    assert fake.sizes == [(400, 300), (300, 400)] and len(found.tables) == 1
    assert [(page.width, page.height) for page in found.pages] == [(400, 300)] * 2 + [(300, 400)] * 2
    assert all("by ocr" in found.pages[place].text for place in (1, 3))
    assert "The left column begins" in found.pages[2].text


def test_an_image_of_one_pixel_is_a_page():
    (page,) = reader()[0](np.zeros((1, 1, 3), np.uint8)).pages
    assert (page.width, page.height) == (1, 1)


@pytest.mark.parametrize("name", ["a.pdf", "a.png"])
@pytest.mark.parametrize("data", [b"", b"Dear all, this is a text."])
def test_files_that_are_not_what_their_name_says(tmp_path: Path, name: str, data: bytes):
    (tmp_path / name).write_bytes(data)
    said = "this is no PDF" if name.endswith("pdf") else "the image is empty|not of a known format"
    with pytest.raises(InputError, match=said) as caught:
        READ(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_no_pages():
    pdf = PdfFile()
    tree = pdf.add("<< /Type /Pages /Kids [] /Count 0 >>")
    root = pdf.add(f"<< /Type /Catalog /Pages {tree} 0 R >>")
    with pytest.raises(InputError, match=r"has no pages|no PDF that can be read"):
        READ(pdf.to_bytes(root, pdf.add("<< >>")))


def rc4(key: bytes, data: bytes) -> bytes:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def encrypted_pdf(password: bytes) -> bytes:
    """ISO 32000-1, 7.6.3, algorithms 1 to 4: RC4 with 40 bits, revision 2."""
    padding = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
    padded = (password + padding)[:32]
    owner = rc4(hashlib.md5(padded, usedforsecurity=False).digest()[:5], padded)
    allowed, identity = (-4).to_bytes(4, "little", signed=True), b"0123456789abcdef"
    key = hashlib.md5(padded + owner + allowed + identity, usedforsecurity=False).digest()[:5]
    content = b"BT /F 12 Tf 50 200 Td (behind a password) Tj ET"
    own = hashlib.md5(key + (1).to_bytes(3, "little") + b"\0\0", usedforsecurity=False).digest()[:10]
    body = rc4(own, content)
    objects = [
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Contents 1 0 R /Resources << /Font << /F << /Type /Font"
        b" /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>"
        % (owner.hex().encode(), rc4(key, padding).hex().encode()),
    ]
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, item in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % at for at in offsets)
    identity_hex = identity.hex().encode()
    out += b"trailer\n<< /Size 6 /Root 4 0 R /Encrypt 5 0 R /ID [<%s> <%s>] >>\nstartxref\n%d\n%%%%EOF\n" % (
        identity_hex, identity_hex, start,
    )  # fmt: skip
    return bytes(out)


def test_encrypted_documents():
    data = encrypted_pdf(b"secret")
    assert READ(data, password="secret").pages[0].text == "behind a password"
    with pytest.raises(InputError, match="the PDF is encrypted"):
        READ(data)
    with pytest.raises(InputError, match="the password is wrong"):
        READ(data, password="other")


def test_large_pages_are_measured_at_less_dots(monkeypatch):
    """20,000 pixels a side at 200 dpi: rendered at what fits, with a warning, and its text where it stands."""
    monkeypatch.setattr("ocr.documents.reader.MOST_PIXELS", 1_000_000)
    read, fake = reader()
    side = 7200
    data = pdf_of(
        f"[0 0 {side} {side}]",
        f"{side} 0 0 {side} 0 0 cm /I Do".encode(),
        "/XObject << /I 1 0 R >>",
        (IMAGE,),
    )
    (page,) = read(data).pages
    assert fake.sizes == [(1000, 1000)]
    assert page.warnings[-1] == "measured at 10 dpi instead of 200: the page is large"
    assert page.to_points is not None and page.width * page.to_points[0] == pytest.approx(side)
    with PdfReader(make_pdf(PdfPage().text(50, 100, "a")), dpi=72) as pages:
        assert pages.render(0, dpi=144).shape == (600, 800, 3)
        assert pages.content(0, dpi=144).text.origins[0] == pytest.approx((100, 200), abs=1)


MEASURE = """
import sys, psutil
from framework.commands.document import main
for file in sys.argv[1:]:
    assert main([file, "--output", file + "_out", "--format", "md,json,html"]) == 0
    print("memory", psutil.Process().memory_info().rss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_pages(tmp_path: Path):
    """After 100 pages a process has at most 1.2 times what it has after 10."""
    files = []
    for count in (10, 100):
        file = tmp_path / f"{count}.pdf"
        pages = [table_page().text(50, 40, f"Heading {n}", 16, "Bold") for n in range(count)]
        file.write_bytes(make_pdf(*pages))
        files.append(str(file))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *files],
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    ten, hundred = (int(row.split()[1]) for row in done.stdout.splitlines() if row.startswith("memory"))
    assert hundred <= 1.2 * ten, (ten, hundred)


def document(*arguments: object):
    return run_tool("document", *arguments)


def test_the_command_on_a_folder(tmp_path: Path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "good.pdf").write_bytes(make_pdf(two_columns(), table_page()))
    (source / "broken.pdf").write_bytes(make_pdf(two_columns())[:100])
    (source / "locked.pdf").write_bytes(encrypted_pdf(b"secret"))
    done = document(source, "--format", "md,json", "--format", "html", "-o", output, "--recovery", "True")
    assert done.returncode == 1
    assert "2 failed" in done.stderr and "broken.pdf" in done.stderr and "is encrypted" in done.stderr
    assert sorted(path.name for path in output.iterdir()) == [
        ".oar", "good.docx", "good.html", "good.json", "good.md",
    ]  # fmt: skip
    plain = json.loads((output / "good.json").read_text(encoding="utf-8"))
    found = Document.from_dict(plain)
    assert [page.page for page in found.pages] == [1, 2] and found.tables[0].columns == 3
    whole = DocumentReader(Lazy(no_ocr))(source / "good.pdf")
    assert (output / "good.md").read_text(encoding="utf-8") == whole.to_markdown()
    assert "<th>Name</th>" in (output / "good.html").read_text(encoding="utf-8")
    # With the password the locked one is read, the finished one is read again for the settings that changed.
    done = document(source / "locked.pdf", "--format", "md", "-o", output, "--password", "secret")
    assert done.returncode == 0 and "behind a password" in (output / "locked.md").read_text(encoding="utf-8")
    assert "secret" not in "".join(path.read_text(encoding="utf-8") for path in (output / ".oar").iterdir())


def test_the_command_on_long_documents(tmp_path: Path, monkeypatch):
    """More pages than are held: headers, levels and tables over page breaks as in one piece, pages of a range."""
    pages = [
        table_page()
        .text(50, 40, f"{n}. Heading", 14, "Bold")
        .text(30, 20, f"Report of {n}", 8)
        .text(195, 290, f"{n}", 8)
        for n in range(1, 9)
    ]
    monkeypatch.setattr("ocr.documents.convert.KEPT", 2)
    file = tmp_path / "long.pdf"
    file.write_bytes(make_pdf(*pages))
    done = document("-i", file, "--save_path", tmp_path / "out", "--format", "md,xlsx")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "long.md").read_text(encoding="utf-8")
    assert text == DocumentReader(Lazy(no_ocr))(file).to_markdown()
    assert "Report" not in text and text.count("# ") == 8
    done = document(file, "-o", tmp_path / "some", "--page_num", "2")
    assert (tmp_path / "some" / "long.md").read_text(encoding="utf-8").count("# ") == 2
    done = document(file, "-o", tmp_path / "some", "--pages", "7-")
    assert (tmp_path / "some" / "long.md").read_text(encoding="utf-8").count("# ") == 2


def test_a_missing_package_is_said_before_anything_is_read(tmp_path: Path, monkeypatch):
    (tmp_path / "a.pdf").write_bytes(make_pdf(two_columns()))
    monkeypatch.setitem(sys.modules, "docx", None)
    done = document(tmp_path / "a.pdf", "-o", tmp_path / "out", "--format", "md,docx")
    assert done.returncode == 2 and "oar-toolkit[office]" in done.stderr
    assert not (tmp_path / "out").exists()


def test_drawings_searchable_pdf_and_fields(tmp_path: Path):
    file = tmp_path / "in.pdf"
    page = (
        PdfPage()
        .text(30, 40, "Acme Ltd", 14)
        .text(30, 60, "Date: 3.4.2020")
        .text(30, 80, "Total")
        .text(200, 80, "3.50")
    )
    file.write_bytes(make_pdf(page))
    done = document(
        file, "-o", tmp_path / "out", "--format", "pdf,paddle", "--draw", "--fields", "--dpi", "72"
    )
    assert done.returncode == 0, done.stderr
    fields = json.loads((tmp_path / "out" / "in_fields.json").read_text(encoding="utf-8"))
    assert {f["name"]: f["value"] for f in fields} == {
        "company": "Acme Ltd",
        "date": "2020-04-03",
        "total": "3.50",
    }
    (layout,) = json.loads((tmp_path / "out" / "in_res.json").read_text(encoding="utf-8"))
    assert layout["page_count"] == 1 and layout["parsing_res_list"][0]["block_order"] == 1
    assert (tmp_path / "out" / "in_page1.png").stat().st_size > 1000
    with PdfReader(tmp_path / "out" / "in.pdf", dpi=72) as pages:
        assert "".join(pages.content(0).text.text).startswith("Acme Ltd")
        assert pages.page_size_hw(0) == pytest.approx((300, 400))


def test_figures_are_cut_out_beside(tmp_path: Path):
    said = (
        b"BT /F 12 Tf 20 270 Td (A line of text that stands above the image of the page, long enough) Tj ET "
    )
    fonts = "/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    file = tmp_path / "my file.pdf"
    content = said + b"q 100 0 0 80 150 50 cm /I Do Q"
    file.write_bytes(pdf_of("[0 0 400 300]", content, f"/XObject << /I 1 0 R >> {fonts}", (IMAGE,)))
    assert document(file, "-o", tmp_path / "out", "--format", "md,html,docx", "--dpi", "72").returncode == 0
    (figure,) = (tmp_path / "out" / "my file_files").iterdir()
    assert f"![](<my file_files/{figure.name}>)" in (tmp_path / "out" / "my file.md").read_text(
        encoding="utf-8"
    )
    assert "data:image/png;base64," in (tmp_path / "out" / "my file.html").read_text(encoding="utf-8")
    assert document(file, "-o", tmp_path / "one", "--format", "html").returncode == 0
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [".oar", "my file.html"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is nothing to read"),
        (("nothing.pdf",), "there is no such file"),
        (("nothing*.pdf",), "no file matches the pattern"),
        (("https://a.b/c.pdf",), "--allow_url"),
        (("a.pdf", "--format", "md,pdx"), "did you mean 'pdf'"),
        (("a.pdf", "--dpi", "0"), "dpi is out of range"),
        (("a.pdf", "--page_num", "-1"), "page_num is too small"),
        (("a.pdf", "--page_num", "1", "--pages", "2"), "pages are named twice"),
        (("a.pdf", "--use_chart_recognition", "True"), "this stage is not there yet"),
        (("a.pdf", "--layout", "False"), "this stage is always there"),
        (("a.pdf", "--use_ocr_results_with_table_cells", "False"), "this stage is always there"),
        (("a.pdf", "--use_e2e_wired_table_rec_model", "True"), "this stage is not there yet"),
        (("a.pdf", "--text_recognition_model_dir", "mine"), "name a config of configs/ocr with -c"),
        (("a.pdf", "--rec_model_dir", "mine"), "this is named otherwise here"),
        (("a.pdf", "--seal_det_thresh", "0.2"), "--seal_model names the config"),
        (("a.pdf", "--wired_table_structure_recognition_model_name", "SLANeXt_wired"), "from their lines"),
        (("a.pdf", "--text_det_limit_type", "min"), "size.limit_type=min"),
        (("a.pdf", "--ocr_version", "PP-OCRv5", "-c", "pp_ocrv6_tiny"), "the recogniser is named twice"),
        (("a.pdf", "--workers", "0"), "workers are too few"),
        (("a.pdf", "-c", "PP-StructureV3", "--opt", "pipeline.dpi=x"), "pipeline.dpi: wrong type"),
    ],
)
def test_what_the_command_refuses(arguments, said):
    done = document(*arguments)
    assert done.returncode == 2 and said in done.stderr


def test_paddles_flags_say_that_they_have_no_effect(tmp_path: Path, caplog):
    file = tmp_path / "a.pdf"
    file.write_bytes(make_pdf(two_columns()))
    done = document(
        "--image_dir", file, "--output", tmp_path, "--table_char_dict_path", "x", "--recovery_to_markdown", "True",
        "--layout", "True", "--table", "False", "--use_pdf2docx_api", "True",
    )  # fmt: skip
    assert done.returncode == 0 and (tmp_path / "a.md").is_file()
    assert "--table_char_dict_path has no effect" in caplog.text


def test_numbers_of_a_drawing_without_blocks():
    assert Page((), width=0, height=0).draw().shape[2] == 3
    assert np.array(READ(make_pdf(PdfPage())).pages[0].draw()).min() == 128  # the divider


def test_lines_before_the_header_hide_no_pdf(tmp_path: Path):
    data = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n" + make_pdf(
        PdfPage().text(40, 40, "A line")
    )
    file = tmp_path / "mailed.pdf"
    file.write_bytes(data)
    for source in (data, str(file)):
        assert READ(source).pages[0].lines[0].text == "A line"
    assert not is_pdf_head(b"\x89PNG\r\n\x1a\n" + bytes(40) + b"%PDF-1.7")
