"""`oar ocr` over files, patterns, folders, standard input and addresses, with a pipeline that tells its images."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from framework.workflow import ImageItem
from framework.workflow.files import sources
from ocr.commands import ocr as command
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Char, Line, Page, Word

SQUARE = ((1.0, 1.0), (21.0, 1.0), (21.0, 9.0), (1.0, 9.0))


class Levels:
    """Pages whose text is the grey level of their images; none of a white one."""

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Page]:
        for item in items:
            level = int(item.image[0, 0, 0])
            text = f"level {level}"
            words = tuple(Word(part, 0.9, SQUARE, (Char(part[0], 0.9, SQUARE),)) for part in text.split())
            lines = () if level == 255 else (Line(text, 0.9, SQUARE, words),)
            height, width = item.image.shape[:2]
            yield Page(
                lines,
                item.number,
                warnings=item.warnings,
                source=item.source,
                width=width,
                height=height,
                image=item.image,
            )


@pytest.fixture
def oar_ocr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(command, "open_model", lambda args, names: OCRPredictor(Levels(), "levels"))  # type: ignore[arg-type]

    def call(*arguments: object) -> SimpleNamespace:
        code = command.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


def image(path: Path, *levels: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = [Image.new("L", (30, 20), level) for level in levels]
    first.save(path, **({"save_all": True, "append_images": others} if others else {}))
    return path


def test_the_text_of_a_file_is_printed(oar_ocr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = oar_ocr(image(tmp_path / "a.png", 7))
    assert (done.code, done.out, done.err) == (0, "level 7\n", "")
    assert oar_ocr("-i", "a.png").out == "level 7\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png"]  # nothing is written


def test_several_files_and_patterns(oar_ocr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image(tmp_path / "a.png", 7)
    image(tmp_path / "b.png", 9)
    expected = "==> a.png <==\nlevel 7\n\n==> b.png <==\nlevel 9\n"
    assert oar_ocr("a.png", "b.png").out == oar_ocr("-i", "*.png").out == expected
    done = oar_ocr("c*.png")
    assert done.code == 2 and "no file matches the pattern" in done.err


def test_every_page_of_a_tiff(oar_ocr, tmp_path):
    file = image(tmp_path / "fax.tif", 7, 9, 255)
    done = oar_ocr(file)
    assert done.out == "level 7\n\flevel 9\n\f" and f"{file}, page 3: no text" in done.err
    assert oar_ocr(file, "--output_dir", tmp_path / "out").code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"fax_page{n}.{kind}" for n in (1, 2, 3) for kind in ("json", "png")
    }


def test_a_folder_with_its_subfolders_says_what_it_leaves_out(oar_ocr, tmp_path):
    image(tmp_path / "in" / "a.png", 7)
    image(tmp_path / "in" / "deeper" / "b.ppm", 9)
    (tmp_path / "in" / "letter.docx").write_bytes(b"x")
    (tmp_path / "in" / "notes.txt").write_bytes(b"x")
    done = oar_ocr(tmp_path / "in", "--format", "txt,json", "--output_dir", tmp_path / "out")
    assert done.code == 0 and "2 files are not read: 1 .docx, 1 .txt" in done.out
    written = sorted(
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")
    )
    assert written == ["a.json", "a.txt", "deeper/b.json", "deeper/b.txt"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.docx").write_bytes(b"x")
    done = oar_ocr(tmp_path / "empty")
    assert done.code == 2 and "1 file is not read: 1 .docx" in done.err


def test_standard_input(oar_ocr, tmp_path, monkeypatch):
    data = image(tmp_path / "a.png", 7).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    done = oar_ocr("-", "--format", "json")
    assert json.loads(done.out)["pages"][0]["lines"][0]["text"] == "level 7" and "standard input" in done.out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert "nothing came" in oar_ocr("-").err


def test_addresses_are_fetched_only_where_that_is_asked_for(oar_ocr, tmp_path, monkeypatch):
    data = image(tmp_path / "a.png", 7).read_bytes()
    monkeypatch.setattr(sources, "open_url", lambda address, headers, timeout: io.BytesIO(data))
    done = oar_ocr("https://example.org/x/receipt.png?y=1")
    assert done.code == 2 and "--allow_url" in done.err
    done = oar_ocr(
        "https://example.org/x/receipt.png?y=1",
        "--allow_url",
        "--format",
        "tsv",
        "--output_dir",
        tmp_path / "o",
    )
    assert done.code == 0 and (tmp_path / "o" / "receipt.tsv").is_file()


def test_all_formats(oar_ocr, tmp_path):
    file = image(tmp_path / "a.tif", 7, 9)
    formats = "txt,json,hocr,alto,pdf,md,tsv,png"
    assert oar_ocr(file, "--format", formats, "--output_dir", tmp_path / "out").code == 0
    written = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert set(written) == {
        "a.txt", "a.json", "a.hocr", "a.alto.xml", "a.pdf", "a.md", "a.tsv", "a_page1.png", "a_page2.png"
    }  # fmt: skip
    rows = [line.split("\t") for line in written["a.tsv"].read_text(encoding="utf-8").splitlines()]
    assert rows[0][:6] == ["level", "page_num", "block_num", "par_num", "line_num", "word_num"]
    assert [row for row in rows if row[0] == "5"][-1] == [
        "5",
        "2",
        "1",
        "1",
        "1",
        "2",
        "1",
        "1",
        "20",
        "8",
        "90.0",
        "9",
    ]
    assert "did you mean" in oar_ocr(file, "--format", "jsn").err
    assert ">level</span> <span" in oar_ocr(file, "--format", "hocr").out


def test_what_cannot_be_read_is_said_and_the_others_are_read(oar_ocr, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing more")
    done = oar_ocr(tmp_path / "broken.png", image(tmp_path / "a.png", 7))
    assert done.code == 1 and "level 7" in done.out and "broken.png" in done.err
    done = oar_ocr()
    assert done.code == 2 and "oar ocr FILE" in done.err
    done = oar_ocr(tmp_path / "a.png", "--text", "x")
    assert done.code == 2 and "several kinds" in done.err


def test_a_result_and_a_predictor_say_briefly_what_they_are(tmp_path):
    read = OCRPredictor(Levels(), "levels")  # type: ignore[arg-type]
    document = read(image(tmp_path / "a.tif", 7, 9))
    assert repr(read) == "OCRPredictor('levels')"
    assert repr(document) == f"Document({str(tmp_path / 'a.tif')!r}, 2 pages, 2 lines)"
    assert repr(document.pages[0].lines[0]) == "Line('level 7', 0.900)"


def test_arrays_are_rgb_or_bgr_as_is_said():
    blue = np.zeros((4, 5, 3), np.uint8)
    blue[..., 2] = 200
    assert OCRPredictor(Levels(), "x")(blue).text == "level 0"  # type: ignore[arg-type]
    assert OCRPredictor(Levels(), "x", bgr=True)(blue).text == "level 200"  # type: ignore[arg-type]
    assert OCRPredictor(Levels(), "x", bgr=True)(Image.fromarray(blue)).text == "level 0"  # type: ignore[arg-type]


def test_one_result_of_a_source_says_that_there_are_more_pages(tmp_path):
    read = OCRPredictor(Levels(), "levels")  # type: ignore[arg-type]
    page = read.predict(image(tmp_path / "a.tif", 7, 9))
    assert page.text == "level 7" and page.warnings == ("the first of 2 pages is read",)
    assert page.to_dict()["warnings"] == ["the first of 2 pages is read"]


def test_pages_of_a_tiff_are_pages_of_a_document(tmp_path):
    read = DocumentReader(Lazy(lambda: OCRPredictor(Levels(), "levels")), figures=False)  # type: ignore[arg-type]
    file = image(tmp_path / "fax.tif", 7, 9, 11)
    assert [(page.page, page.text) for page in read(file).pages] == [
        (1, "level 7"),
        (2, "level 9"),
        (3, "level 11"),
    ]
    assert [page.text for page in read(file, pages="2-").pages] == ["level 9", "level 11"]
    assert [page.text for page in read(image(tmp_path / "one.png", 5)).pages] == ["level 5"]
