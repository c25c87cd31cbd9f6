"""A row for each source, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.workflow.batch.rows import BatchSource, ResultRow, predict_rows
from framework.workflow.domain.predictor import ImageItem, LanguagePredictor, VisionPredictor
from framework.workflow.domain.result import ImageResult, TextResult
from tests.unit.framework.serving.test_predict import pdf
from tests.unit.framework.serving.tiny import png


@dataclass(frozen=True)
class Mean(ImageResult):
    value: int

    def _content(self) -> dict[str, int]:
        return {"value": self.value}

    def overlay(self) -> np.ndarray:
        return self.pixels


class MeanPredictor(VisionPredictor[Mean]):
    """Takes `batch` images at a time, fails for a whole batch with a black one, and counts its batches."""

    def __init__(self, batch: int = 4) -> None:
        self.batch, self.sizes = batch, list[int]()

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Mean]:
        taken: list[ImageItem] = []
        for item in items:
            taken.append(item)
            if len(taken) == self.batch:
                yield from self._run(taken)
                taken = []
        yield from self._run(taken)

    def _run(self, items: list[ImageItem]) -> Iterator[Mean]:
        self.sizes.append(len(items))
        for item in items:
            if item.image.max() == 0:
                raise ZeroDivisionError("a black image")
        for item in items:
            height, width = item.image.shape[:2]
            yield Mean(source=item.source, width=width, height=height, value=int(item.image.mean()))


class Words(LanguagePredictor[TextResult]):
    pairs = False

    def predict_stream(self, items: Iterable[object]) -> Iterator[TextResult]:
        raise NotImplementedError

    def predict_attempts(self, texts: Iterable[object]) -> Iterator[TextResult | InputError]:
        for text in texts:
            if text == "crash":
                raise RuntimeError("no memory")
            yield InputError("no words") if text == "" else Length(str(text))


@dataclass(frozen=True)
class Length(TextResult):
    def to_dict(self) -> dict[str, object]:  # type: ignore[override]
        return {"length": len(self.text)}


def values(rows: Iterable[ResultRow]) -> list[object]:
    """The value of each row, or its error."""
    return [row.error if not isinstance(row.result, dict) else row.result["value"] for row in rows]


def test_every_source_has_its_row_in_order(tmp_path: Path) -> None:
    good = [BatchSource(f"s{value}", png(value)) for value in range(1, 12)]
    predictor = MeanPredictor()
    rows = list(predict_rows(predictor, good))
    assert values(rows) == list(range(1, 12)) and [row.source for row in rows] == [one.name for one in good]
    assert predictor.sizes == [4, 4, 3]
    assert rows[0].result == {"source": "s1", "width": 16, "height": 12, "value": 1}


def test_one_image_that_fails_costs_no_other_its_result() -> None:
    sources = [BatchSource(str(value), png(value)) for value in (5, 0, 7, 8, 9, 0, 11)]
    rows = values(predict_rows(MeanPredictor(), sources))
    assert rows == [5, "ZeroDivisionError: a black image", 7, 8, 9, "ZeroDivisionError: a black image", 11]
    assert values(predict_rows(MeanPredictor(1), sources[1:2])) == ["ZeroDivisionError: a black image"]


def test_what_cannot_be_read_is_an_error_in_its_row(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"x" * 100)
    (tmp_path / "a.png").write_bytes(png(3)[:40])
    (tmp_path / "folder.png").mkdir()
    sources = [
        BatchSource("none", tmp_path / "none.png"),
        BatchSource("clip", tmp_path / "clip.mp4"),
        BatchSource("half", tmp_path / "a.png"),
        BatchSource("folder", tmp_path / "folder.png"),
        BatchSource("empty", b""),
        BatchSource("text", "words"),
        BatchSource("null", problem="the row is empty"),
        BatchSource("good", png(77)),
    ]
    rows = list(predict_rows(MeanPredictor(), sources))
    assert [row.source for row in rows] == [one.name for one in sources]
    assert values(rows)[-1] == 77 and all(row.error and row.result is None for row in rows[:-1])
    assert "videos are not read" in str(rows[1].error) and rows[6].error == "the row is empty"
    assert list(predict_rows(MeanPredictor(), [])) == []


def test_a_document_has_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from framework.workflow.batch import rows as module

    (row,) = predict_rows(MeanPredictor(2), [BatchSource("scan", pdf(3))])
    assert isinstance(row.result, list) and len(row.result) == 3 and row.error is None
    (row,) = predict_rows(MeanPredictor(2), [BatchSource("scan", pdf(1))])
    assert isinstance(row.result, list) and len(row.result) == 1  # a list, however many pages there are

    class Torn(module.PdfReader):
        def __getitem__(self, page: int) -> np.ndarray:
            if page == 1:
                raise InputError("the page is torn")
            return super().__getitem__(page)

    monkeypatch.setattr(module, "PdfReader", Torn)
    (row,) = predict_rows(MeanPredictor(2), [BatchSource("scan", pdf(3))])
    assert isinstance(row.result, list) and row.error == "page 2: the page is torn"
    assert row.result[1] == {"page": 2, "error": "the page is torn"}
    assert [isinstance(one, dict) and "value" in one for one in row.result] == [True, False, True]
    (row,) = predict_rows(MeanPredictor(2), [BatchSource("no", b"%PDF-1.7 and nothing more")])
    assert row.result is None and row.error


def test_texts() -> None:
    texts = [("a", "four"), ("b", ""), ("c", "crash"), ("d", "sixsix")]
    sources = [
        *(BatchSource(name, text) for name, text in texts),
        BatchSource("e", ("x", "y")),
        BatchSource("f", b"bytes"),
    ]
    rows = list(predict_rows(Words(), sources))
    assert [row.source for row in rows] == list("abcdef")
    assert rows[0].result == {"length": 4} and rows[3].result == {"length": 6}
    assert rows[1].error == "no words" and rows[2].error == "RuntimeError: no memory"
    assert rows[4].error == "the model takes a text" and "this is a file" in str(rows[5].error)
