"""`oar verify-deploy`: what counts as equal, the table, and runtimes that are not here."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from detection.comparison import compare_detections
from detection.results import Box, DetectionResult
from framework.commands.verify_deploy import main
from framework.core.errors import InputError
from framework.export.artifact import Artifact
from framework.inference.engines import wasm
from framework.interop import write_safetensors
from framework.vision import image
from framework.workflow.domain.comparison import Comparison, compare_json
from framework.workflow.verify import server, verify
from framework.workflow.verify.runtimes import VerifyRuntime
from framework.workflow.verify.server import JsonResult
from framework.workflow.verify.verify import DeployReport, RuntimeRow, verify_deploy
from ocr.results.comparison import compare_pages, compare_words
from ocr.results.lines import Line
from ocr.results.pages import Page
from segmentation.comparison import compare_segmentations
from segmentation.results import Segmentation
from zoo.classification.comparison import compare_classifications
from zoo.classification.results import Class, Classification
from zoo.vision.lenet import LeNet, LeNetConfig

REPO = Path(__file__).resolve().parents[5]


def boxes(*rows: tuple[int, float, float]) -> DetectionResult:
    """(class, score, left) each, of 20 x 20 pixels."""
    made = (Box("a", number, score, (left, 5.0, left + 20, 25.0)) for number, score, left in rows)
    return DetectionResult(tuple(made), width=200, height=100)


def test_boxes_are_equal_within_a_pixel_and_a_thousandth() -> None:
    one = boxes((0, 0.9, 10.0), (1, 0.8, 60.0))
    assert compare_detections(one, one) == Comparison(2, 2, {"px": 0.0, "score": 0.0})
    near = compare_detections(one, boxes((1, 0.8005, 60.5), (0, 0.9, 10.0)))
    assert near.equal == 2 and near.differences["px"] == pytest.approx(0.5)
    assert compare_detections(one, boxes((0, 0.9, 12.0), (1, 0.8, 60.0))).equal == 1  # two pixels off
    assert compare_detections(one, boxes((0, 0.89, 10.0), (1, 0.8, 60.0))).equal == 1  # another score
    assert compare_detections(one, boxes((1, 0.9, 10.0), (1, 0.8, 60.0))).equal == 1  # another class
    twice = compare_detections(boxes((0, 0.9, 10.0), (0, 0.9, 10.0)), boxes((0, 0.9, 10.0)))
    assert (twice.equal, twice.total) == (1, 2)
    assert compare_detections(boxes(), boxes()).share == 1 and compare_detections(boxes(), one).share == 0


def test_pixels_and_labels_are_counted() -> None:
    labels = np.zeros((4, 5), np.uint8)
    other = labels.copy()
    other[0, :2] = 1
    colours = np.zeros((2, 3), np.uint8)

    def segmentation(array: np.ndarray) -> Segmentation:
        height, width = array.shape
        return Segmentation(labels=array, names=("a", "b"), palette=colours, width=width, height=height)

    found = compare_segmentations(segmentation(labels), segmentation(other))
    assert (found.equal, found.total) == (18, 20) and found.differences == {"pixels": 2.0}
    assert compare_segmentations(segmentation(labels), segmentation(labels.T)).equal == 0

    def classes(*scores: float) -> Classification:
        ranked = sorted(enumerate(scores), key=lambda one: -one[1])
        return Classification(tuple(Class(str(i), i, score) for i, score in ranked), width=1, height=1)

    same = compare_classifications(classes(0.7, 0.3), classes(0.69, 0.31))
    assert same.equal == 1 and same.differences["score"] == pytest.approx(0.01)
    assert compare_classifications(classes(0.7, 0.3), classes(0.3, 0.7)).equal == 0


def page(*lines: tuple[str, float]) -> Page:
    made = (Line(text, 0.9, ((x, 0.0), (x + 50, 0.0), (x + 50, 10.0), (x, 10.0))) for text, x in lines)
    return Page(lines=tuple(made), width=300, height=100)


def test_lines_are_equal_by_text_and_box() -> None:
    one = page(("Total 1.50", 0.0), ("Total 1.50", 100.0), ("Cash", 200.0))
    assert compare_pages(one, page(("Cash", 200.0), ("Total 1.50", 101.0), ("Total 1.50", 0.0))).equal == 3
    assert compare_pages(one, page(("Total 1.5O", 0.0), ("Total 1.50", 100.0), ("Cash", 200.0))).equal == 2
    assert compare_pages(one, page(("Total 1.50", 30.0), ("Total 1.50", 100.0), ("Cash", 200.0))).equal == 2
    fewer = compare_pages(one, page(("Cash", 200.0)))
    assert (fewer.equal, fewer.total) == (1, 3)


def test_words_count_wherever_they_stand() -> None:
    one = page(("Total 1.50", 0.0), ("合計 RM", 100.0))  # Total, 1, 50, two characters, RM
    assert compare_words(one, page(("合計", 7.0), ("RM Total", 3.0), ("1.50", 9.0))).share == 1
    worse = compare_words(one, page(("Total 1.5O", 0.0), ("合 RM", 100.0)))
    assert (worse.equal, worse.total) == (2 * 4, 6 + 5)
    assert compare_words(page(), page()).share == 1


def test_any_result_is_compared_by_its_json() -> None:
    def result(**content: object) -> JsonResult:
        return JsonResult(content)  # type: ignore[arg-type]

    one = result(source="a.png", text="a", scores=[0.5, 0.25], deep={"flag": True, "none": None})
    other = result(source="b.png", text="a", scores=[0.5004, 0.25], deep={"flag": True, "none": None})
    assert compare_json(one, other).equal == 1
    for change in (
        {"text": "b"},
        {"scores": [0.5]},
        {"scores": [0.6, 0.25]},
        {"deep": {"flag": False, "none": None}},
    ):
        assert compare_json(one, result(**{**one.content, **change})).equal == 0


def test_comparisons_add_up() -> None:
    total = Comparison(1, 2, {"px": 0.5}) + Comparison(3, 3, {"px": 0.1, "score": 0.2})
    assert total == Comparison(4, 5, {"px": 0.5, "score": 0.2}) and total.share == 0.8


def test_the_table_tells_what_differs_and_what_did_not_run() -> None:
    rows = (
        RuntimeRow("xla", Comparison(10, 10), 5.0, 2.0, 2_000_000),
        RuntimeRow("litert", Comparison(9, 10, {"px": 3.0}), 6.0, 3.0, 1_000_000),
        RuntimeRow("wasm", note="no node"),
    )
    report = DeployReport("m", 4, "boxes", 1.0, rows)
    text = report.describe()
    assert "DIFFERS" in text and "3 px" in text and "not run: no node" in text and not report.is_equal
    assert DeployReport("m", 4, "boxes", 0.9, rows).is_equal
    data = json.loads(json.dumps(report.to_dict()))
    assert [row["runtime"] for row in data["runtimes"]] == ["xla", "litert", "wasm"]
    assert data["runtimes"][1]["differences"] == {"px": 3.0} and data["runtimes"][2]["equal"] is None


def test_weights_of_other_types_count_and_are_told_from_those_of_float32() -> None:
    int8 = RuntimeRow("litert", Comparison(1, 10, {"px": 9.0}), dtype="int8")
    report = DeployReport("m", 4, "boxes", 1.0, (RuntimeRow("xla", Comparison(10, 10)), int8))
    text = dataclasses.replace(report, examples=8).describe()
    assert "ranges of int8 of at most 8 examples" in text and "examples" not in report.describe()
    assert not report.is_equal and "DIFFERS (int8: held to its score" in text and "9 px" in text
    wrong = DeployReport("m", 4, "boxes", 1.0, (*report.rows, RuntimeRow("ort", Comparison(9, 10))))
    assert not wrong.is_equal and "DIFFERS" in wrong.describe()


# -- on a model -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LeNet with drawn weights, and a folder of images."""
    root = tmp_path_factory.mktemp("verify")
    rng = np.random.default_rng(0)
    for number in range(5):
        pixels = rng.integers(0, 256, (30 + number, 40, 3)).astype(np.uint8)
        image.write(root / "images" / "some" / f"{number}.png", pixels)
    weights = {name: np.asarray(value) for name, value in LeNet(LeNetConfig(3)).state_dict().items()}
    write_safetensors(root / "a.safetensors", weights)
    path = root / "shades.yml"
    path.write_text(
        f"""
_base_: {(REPO / "configs/_base_/classification.yml").as_posix()}
model: {{type: LeNet, num_classes: 3}}
weights: {root.as_posix()}/a.safetensors
task: {{type: ImageClassification, topk: [1]}}
predict: {{transforms: [{{type: Resize, size_hw: [28, 28]}}]}}
export: {{precisions: [float32], inputs: {{image: {{shape: [n, 28, 28, 3], dtype: uint8}}}}}}
""",
        encoding="utf-8",
    )
    return path


def test_runtimes_that_are_installed_agree(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    table = tmp_path / "table.json"
    command = [str(config), "--images", str(config.parent / "images"), "--json", str(table)]
    assert main([*command, "--runtimes", "onnxruntime,ort,xla"]) == 0
    rows = json.loads(table.read_text(encoding="utf-8"))["runtimes"]
    assert [row["runtime"] for row in rows] == ["xla", "onnxruntime", "ort"]
    assert all(row["equal"] == row["total"] == 5 and row["size"] > 1000 for row in rows)
    assert "onnxruntime" in capsys.readouterr().out


def test_a_runtime_without_its_file_is_told(config: Path, tmp_path: Path) -> None:
    from framework.workflow.export.export import write_artifact

    folder = write_artifact(config, tmp_path)
    report = verify_deploy(
        str(folder), config.parent / "images", ("litert", "ort", "onnxruntime"), most_images=2
    )
    assert report.images == 2 and [row.comparison is None for row in report.rows] == [False, True, True, True]
    assert "--format ort" in report.rows[2].note and "--format onnx" in report.rows[3].note


def test_a_package_that_is_missing_leaves_one_runtime_out(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "can_write_tflite", lambda: False)
    report = verify_deploy(str(config), config.parent / "images", ("litert",), most_images=1)
    assert [row.comparison is None for row in report.rows] == [False, True]
    assert ".tflite" in report.rows[1].note


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import time; time.sleep(60)", "not ready in 0.5 s(.|\\n)*begins"),
        ("", "does not start(.|\\n)*begins"),
    ],
)
def test_a_server_that_does_not_start_says_why(
    code: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import sys; print('begins', file=sys.stderr, flush=True); {code}"
    monkeypatch.setattr(server, "_SECONDS_TO_START", 0.5 if code else 60)

    def start(command: Sequence[str], stdout: int, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        started = popen([sys.executable, "-S", "-c", program], stdout=stdout, stderr=stderr)
        while started.poll() is None and not os.fstat(stderr.fileno()).st_size:
            time.sleep(0.01)
        return started

    popen = subprocess.Popen
    monkeypatch.setattr(server.subprocess, "Popen", start)
    with pytest.raises(InputError, match=text):
        server.ServedModel(tmp_path)


def test_wrong_runtimes_and_folders_are_refused(config: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown runtime"):
        verify_deploy(str(config), config.parent / "images", ("xla", "tensorrt"))
    with pytest.raises(InputError, match="nothing to run the model on"):
        verify_deploy(str(config), tmp_path, ("xla",))


def test_without_node_the_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(wasm.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="onnxruntime-web cannot run here") as error:
        wasm.WasmEngine(tmp_path / "model.onnx", {}, {})
    assert "no node" in str(error.value)
    monkeypatch.setenv(wasm.PACKAGE_VARIABLE, str(tmp_path))
    assert wasm.find_onnxruntime_web() is None
    (tmp_path / "package.json").write_text("{}", encoding="utf-8")
    assert wasm.find_onnxruntime_web() == tmp_path


@pytest.mark.skipif(wasm.find_onnxruntime_web() is None, reason="npm's onnxruntime-web is not installed")
def test_wasm_agrees(config: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = verify_deploy(str(config), config.parent / "images", ("wasm",))
    assert report.rows[1].comparison == report.rows[0].comparison or report.is_equal
    assert report.rows[1].comparison is not None and report.rows[1].comparison.share == 1


def test_artifacts_of_no_program_are_told() -> None:
    with pytest.raises(Exception, match="no program"):
        VerifyRuntime(name="xla").open(Artifact({"name": "empty"}))
