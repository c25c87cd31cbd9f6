"""Synthetic documents: their truth, the files that the command writes, and the order in which they are read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.commands.main import main
from framework.core.errors import ConfigError, FormatError
from framework.workflow.files.pdf import PdfReader
from ocr.data.synthesize import collect_coco, synthesize
from ocr.data.synthetic.documents import CLASS_NAMES, SCHEMES, SyntheticDocuments
from ocr.documents.assemble import arrange
from ocr.documents.order import order_boxes
from ocr.results.blocks import Table
from ocr.results.page_text import read_text_layer
from ocr.results.pages import Page


def test_samples_follow_the_page_and_the_seed() -> None:
    data = SyntheticDocuments(count=3, seed=4)
    sample, page = data[1], data.page(1)
    assert np.array_equal(sample.image, data[1].image)
    assert page.image is not None and np.array_equal(sample.image, page.image)
    assert not np.array_equal(sample.image, data[2].image[: sample.image.shape[0], : sample.image.shape[1]])
    boxes, labels = sample.boxes, sample.labels
    assert boxes is not None and labels is not None and len(boxes) == len(labels) > 2
    height, width = sample.image.shape[:2]
    assert (boxes[:, 2:] > boxes[:, :2]).all() and (boxes >= 0).all()
    assert (boxes[:, 2] <= width + 1).all() and (boxes[:, 3] <= height + 1).all()
    assert data.class_names == ("text", "title", "list", "table", "figure")
    with pytest.raises(IndexError):
        data[3]


def test_all_kinds_of_blocks_are_drawn() -> None:
    data = SyntheticDocuments(count=24, seed=1, classes="doclayout", dpi=(72.0, 72.0))
    pages = [data.page(number) for number in range(24)]
    found = {block.label for page in pages for block in page.blocks}
    wanted = "text doc_title paragraph_title list_item table table_title image chart figure_title formula header number"
    assert set(wanted.split()) | {"footer", "footnote", "abstract", "reference"} <= found
    tables = [block.content for page in pages for block in page.blocks if isinstance(block.content, Table)]
    assert len(tables) > 5 and any(table.has_spans for table in tables)
    for page in pages:  # every ink of a text lies in its block
        orders = [block.order for block in page.blocks if block.order is not None]
        assert orders == list(range(len(orders)))
        assert all(
            block.order is None for block in page.blocks if block.label in ("header", "footer", "number")
        )


def test_every_scheme_names_classes_that_it_has() -> None:
    for scheme, names in SCHEMES.items():
        assert set(names.values()) <= set(CLASS_NAMES[scheme])
        data = SyntheticDocuments(count=2, classes=scheme)
        labels = data[0].labels
        assert labels is not None and labels.max() < len(data.class_names)


def test_text_of_a_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("only these five words here\n" * 5, encoding="utf-8")
    page = SyntheticDocuments(count=1, corpus=(corpus,), columns=(1, 1)).page(0)
    words = {
        word.strip(".,") for block in page.blocks if block.label == "text" for word in block.text.split()
    }
    known = {"only", "these", "five", "words", "here"}
    assert words and {word.lower() for word in words} <= known | {""}


def test_the_command_writes_cocos_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pages"
    assert main(["data", "synthesize", "documents", str(out), "--count", "2", "--seed", "3"]) == 0
    assert "2 images" in capsys.readouterr().out
    data = json.loads((out / "annotations.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in data["categories"]] == ["text", "title", "list", "table", "figure"]
    assert [one["id"] for one in data["categories"]] == [1, 2, 3, 4, 5] and len(data["images"]) == 2
    assert all((out / one["file_name"]).is_file() for one in data["images"])
    source = SyntheticDocuments(count=2, seed=3)[0]
    first = [one for one in data["annotations"] if one["image_id"] == 1]
    assert source.boxes is not None and source.labels is not None and isinstance(source.text, tuple)
    left, top, right, bottom = source.boxes[0].tolist()
    np.testing.assert_allclose(first[0]["bbox"], [left, top, right - left, bottom - top], atol=0.11)
    assert [one["category_id"] - 1 for one in first] == source.labels.tolist()
    assert [one["text"] for one in first] == list(source.text)
    # more of the same is added, and the file grows
    report = synthesize("SyntheticDocuments", out, ("count=3", "seed=3"))
    assert (report.written, report.before) == (1, 2)
    assert len(json.loads((out / "annotations.json").read_text(encoding="utf-8"))["images"]) == 3


def test_pages_as_a_pdf(tmp_path: Path) -> None:
    """Scans with the true text behind them: what is read along comes back, word by word."""
    document = SyntheticDocuments(count=4, seed=8, columns=(1, 1), dpi=(72.0, 72.0)).document(1, 2)
    assert [page.page for page in document.pages] == [1, 2]
    document.to_searchable_pdf(tmp_path / "pages.pdf", dpi=72)
    with PdfReader(tmp_path / "pages.pdf", dpi=72.0) as reader:
        assert len(reader) == 2
        found = read_text_layer(reader.content(0), keep_invisible=True).text.split()
    wanted = [word for line in document.pages[0].lines for word in line.text.split()]
    assert len(wanted) > 50 and len(set(wanted) & set(found)) > 0.95 * len(set(wanted))


def test_labels_that_were_not_written_here(tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.write_text("images/0.jpg\tno json\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"labels\.txt, line 1"):
        collect_coco(file, ("text",))


def test_wrong_settings() -> None:
    with pytest.raises(ConfigError, match="columns"):
        SyntheticDocuments(columns=(3, 1))


def edit_distance(found: list[int], wanted: list[int]) -> float:
    """Levenshtein's, as a share of the length."""
    row = list(range(len(wanted) + 1))
    for number, one in enumerate(found, 1):
        before, row[0] = row[:], number
        for place, other in enumerate(wanted, 1):
            row[place] = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (one != other))
    return row[-1] / max(len(wanted), 1)


def distance_of_order(page: Page) -> float:
    body = [block for block in page.blocks if block.order is not None and block.label != "footnote"]
    found = order_boxes([block.bbox for block in body]).tolist()
    return edit_distance(found, list(range(len(body))))


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_reading_order(count: int) -> None:
    """Of 1 to 3 columns, with titles, figures and tables over all of them."""
    data = SyntheticDocuments(count=count, seed=5, dpi=(72.0, 72.0))
    distances = [distance_of_order(data.page(number)) for number in range(count)]
    assert np.mean(distances) <= 0.05


def test_arranged_blocks_keep_the_order_of_the_page() -> None:
    page = SyntheticDocuments(count=9, seed=6, columns=(2, 2)).page(2)
    shuffled = [page.blocks[i] for i in np.random.default_rng(0).permutation(len(page.blocks))]
    again = arrange(shuffled, page.height)
    texts = [block.text for top in again if top.order is not None for block in top.walk()]
    assert sorted(texts) == sorted(block.text for block in page.blocks if block.order is not None)
