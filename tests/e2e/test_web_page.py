"""Pages of exported models in headless Chromium give what Python gives, the second time without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import ocr
from detection import predictor as open_detector
from framework.workflow.export.export import write_artifact
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.web.folder import PageOptions
from framework.workflow.export.web.pages import write_web
from ocr.results.lines import Line
from segmentation import predictor as open_segmenter
from tests.e2e.web_pages import MODULES, drive, need_browser, need_node, served
from zoo.classification import predictor as open_classifier

pytestmark = pytest.mark.slow
REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """(artifact with ONNX, page) of a configuration of the package's own weights."""
    need_node()
    need_browser()
    root = tmp_path_factory.mktemp("web")

    def export(name: str) -> tuple[Path, Path]:
        artifact = root / name
        if not artifact.exists():
            write_artifact(name, root, onnx=OnnxOptions(check=False))
        return artifact, write_web(artifact, root, page=PageOptions(MODULES, webgpu=False))

    return export


def draw_photos(folder: Path, count: int, size_hw: tuple[int, int], channels: int = 3) -> list[Path]:
    """Images of round and angular patches with noise, of several sizes."""
    rng, paths = np.random.default_rng(3), []
    for index in range(count):
        height, width = (side + 37 * index for side in size_hw)
        y, x = np.mgrid[:height, :width]
        image = np.full((height, width, 3), rng.integers(150, 240, 3), np.float64)
        for _ in range(14):
            centre, radius = rng.uniform((0, 0), (height, width)), rng.uniform(8, 45)
            image[np.hypot(y - centre[0], x - centre[1]) < radius] = rng.integers(40, 220, 3)
        image = (image + rng.normal(0, 6, image.shape)).clip(0, 255).astype(np.uint8)
        path = folder / f"photo{index}.png"
        Image.fromarray(image if channels == 3 else image[..., 0]).save(path)
        paths.append(path)
    return paths


def test_boxes(exported: Callable[[str], tuple[Path, Path]], tmp_path: Path) -> None:
    artifact, page = exported("picodet_s_320_bccd")
    photos = draw_photos(tmp_path, 3, (240, 320))
    rotated = Image.open(photos[0])
    exif = rotated.getexif()
    exif[0x0112] = 6  # turned by a quarter
    rotated.save(tmp_path / "turned.jpg", quality=95, exif=exif)
    photos.append(tmp_path / "turned.jpg")
    with served(page) as address:
        _, results = drive(address, photos)
    detector = open_detector(artifact, engine="onnxruntime")
    total = 0
    for photo, result in zip(photos, results, strict=True):
        expected = detector(photo).boxes
        assert [one["label"] for one in result["boxes"]] == [box.label for box in expected]
        for one, box in zip(result["boxes"], expected):
            np.testing.assert_allclose(one["box"], box.bbox, atol=1)
            assert one["score"] == pytest.approx(box.score, abs=1e-3)
        total += len(expected)
    assert total > 3


def test_classes(exported: Callable[[str], tuple[Path, Path]], tmp_path: Path) -> None:
    artifact, page = exported("pp_lcnet_x0_25_clothing")
    photos = draw_photos(tmp_path, 3, (150, 180))
    with served(page) as address:
        _, results = drive(address, photos)
    classifier = open_classifier(artifact, engine="onnxruntime")
    for photo, result in zip(photos, results, strict=True):
        expected = classifier(photo).classes
        assert [one["label"] for one in result["classes"]] == [one.label for one in expected]
        np.testing.assert_allclose(
            [one["score"] for one in result["classes"]], [one.score for one in expected], atol=1e-3
        )


def test_masks(exported: Callable[[str], tuple[Path, Path]], tmp_path: Path) -> None:
    artifact, page = exported("pp_liteseg_stdc1_membrane")
    photos = draw_photos(tmp_path, 2, (200, 300))
    with served(page) as address:
        _, results = drive(address, photos)
    segmenter = open_segmenter(artifact, engine="onnxruntime")
    for photo, result in zip(photos, results, strict=True):
        expected = segmenter(photo).labels
        labels = np.array(result["masks"]["labels"]).reshape(expected.shape)
        assert len(np.unique(expected)) > 1
        assert (labels == expected).mean() >= 0.999


def test_lines_and_a_second_visit_without_a_network(exported: Callable[[str], tuple[Path, Path]]) -> None:
    artifact, page = exported("oar_latin")
    receipt = REPO / "docs" / "images" / "receipt.png"
    with served(page) as address:
        ready, results = drive(address, [receipt, receipt], "--offline")
    assert "thread" in ready["engine"]
    reader = ocr.predictor(artifact, engine="onnxruntime")
    expected = reader(receipt).pages[0].lines
    assert len(expected) > 10
    assert [one["text"] for one in results[0]["lines"]] == [line.text for line in expected]
    assert results[1]["lines"] == results[0]["lines"]
    for one, line in zip(results[0]["lines"], expected):
        np.testing.assert_allclose(one["polygon"], line.polygon, atol=1)
        assert one["score"] == pytest.approx(line.score, abs=1e-3)


def count_equal(lines: Sequence[dict[str, Any]], expected: Sequence[Line]) -> int:
    """How many lines of a page say what Python's say at the same place, in whatever order; each counts once."""
    left, equal = list(lines), 0
    for line in expected:
        quad = np.asarray(line.polygon)
        near = 0.5 * min(np.ptp(quad, axis=0))  # another line of the same text is farther away
        for one in left:
            if one["text"] == line.text and abs(np.asarray(one["polygon"]) - quad).max() <= near:
                left.remove(one)
                equal += 1
                break
    return equal


def test_receipts(shared: Path, exported: Callable[[str], tuple[Path, Path]]) -> None:
    artifact, page = exported("oar_latin")
    receipts = sorted((shared / "data" / "sroie" / "test" / "img").glob("*.jpg"))[:10]
    with served(page) as address:
        _, results = drive(address, receipts)
    reader = ocr.predictor(artifact, engine="onnxruntime")
    equal = total = 0
    for receipt, result in zip(receipts, results, strict=True):
        expected = reader(receipt).pages[0].lines
        equal += count_equal(result["lines"], expected)
        total += max(len(result["lines"]), len(expected))
    assert equal >= 0.99 * total
