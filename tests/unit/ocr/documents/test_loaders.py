"""Which runtime the networks of a document reader are opened with, and how often."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.inference import Runtime
from framework.vision import image as vision_image
from ocr.documents import document, loaders, table_models
from ocr.documents.convert import open_converter
from ocr.documents.layout_model import open_layout
from ocr.documents.loaders import make_opener, open_default_layout
from ocr.documents.once import Once
from ocr.documents.options import DocumentOptions
from ocr.documents.table_models import make_table_opener
from ocr.pipeline.predictor import OCRPredictor

RUNTIME = Runtime("cpu", "float32", "onnxruntime", 1)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Runtime]]]:
    """What is opened from now on, with its runtime; nothing is loaded."""
    seen: list[tuple[str, Runtime]] = []

    def open_one(model: Any, *, runtime: Runtime, **_: Any) -> Any:
        seen.append((str(model), runtime))
        return OCRPredictor(None, "")  # type: ignore[arg-type]

    monkeypatch.setattr(loaders, "open_predictor", open_one)
    monkeypatch.setattr(loaders, "open_layout", open_one)
    monkeypatch.setattr(document, "open_layout", open_one)
    monkeypatch.setattr(table_models, "open_predictor", open_one)
    open_default_layout.cache_clear()
    yield seen
    open_default_layout.cache_clear()


def test_every_network_runs_where_the_user_said(opened: list[tuple[str, Runtime]]) -> None:
    options = DocumentOptions(
        layout_model="PP-DocLayout-S",
        table_model="table_grid_s",
        formula_model="PP-FormulaNet-S",
        seals=True,
    )
    read = open_converter("pp_ocrv6_small", options, RUNTIME)._reader
    assert read.open_seals is not None and read.open_figures is not None
    assert read.open_table is not None and read.open_formula is not None
    for open_it in (read.open_ocr, read.open_seals, read.open_figures):
        open_it()
    for open_it in (read.open_table, read.open_formula):  # of another kind: it was opened before that is seen
        with pytest.raises(InputError, match="this model reads no"):
            open_it()
    assert {model for model, _ in opened} == {
        "PP-DocLayout-S", "pp_ocrv6_small", "pp_ocrv4_server_seal", loaders.DEFAULT_LAYOUT, "table_grid_s",
        "PP-FormulaNet-S",
    }  # fmt: skip
    assert {runtime for _, runtime in opened} == {RUNTIME}


def test_each_is_opened_once(opened: list[tuple[str, Runtime]]) -> None:
    open_ocr = make_opener("pp_ocrv6_small", RUNTIME)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(map(id, pool.map(lambda _: open_ocr(), range(8))))) == 1
    assert open_default_layout(Runtime()) is open_default_layout(Runtime())
    assert open_default_layout(Runtime()) is not open_default_layout(RUNTIME)
    assert [model for model, _ in opened] == ["pp_ocrv6_small", *[loaders.DEFAULT_LAYOUT] * 2]


def test_threads_that_ask_at_once_open_one_of_each() -> None:
    seen: list[str] = []
    together = threading.Barrier(4)

    def open_it(name: str) -> object:
        seen.append(name)
        time.sleep(0.05)  # what opens a model takes long enough that the others ask meanwhile
        if seen == ["broken"]:
            raise InputError("the first time")
        return object()

    opener = Once(open_it)

    def ask(name: str) -> object:
        together.wait()
        return opener(name)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, ("a", "b", "a", "b")))
        assert found[0] is found[2] and found[1] is found[3] and found[0] is not found[1]
        assert sorted(seen) == ["a", "b"]
        seen.clear()
        asked = [pool.submit(ask, "broken") for _ in range(4)]
        assert sum(one.exception() is not None for one in asked) == 1 and seen == ["broken"] * 2


def test_a_network_that_reads_no_tables(opened: list[tuple[str, Runtime]]) -> None:
    with pytest.raises(InputError, match=r"table_model: this model reads no tables"):
        make_table_opener("pp_ocrv6_small", RUNTIME)()


def test_the_layout_network_runs_as_ocr_does_and_finds_the_same_on_each_engine() -> None:
    """OpenVINO needs no compilation, which takes XLA many times as long as the first page."""
    openvino = pytest.importorskip("framework.inference.engines.openvino")
    pytest.importorskip("openvino")
    page = vision_image.read(Path(__file__).parents[4] / "docs" / "images" / "receipt.png")
    chosen = open_default_layout(Runtime("cpu"))
    assert isinstance(chosen.runner.engine, openvino.OpenVINOEngine)
    found, same = (
        chosen(page),
        open_layout(loaders.DEFAULT_LAYOUT, runtime=Runtime("cpu", engine="xla"))(page),
    )
    assert [one.label for one in found] == [one.label for one in same] and found
    for one, other in zip(found, same, strict=True):
        assert np.allclose((*one.box, one.score), (*other.box, other.score), atol=1e-3)
