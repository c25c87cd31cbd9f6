"""The tools as a user runs them, from config and from artifact, on good and on broken inputs.

Each tool runs once as a process of its own; the other runs are calls of its `main`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.vision import image as vision_image
from framework.vision.video import VideoReader, VideoWriter
from ocr.results.pages import Document, Page
from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]
RECEIPT = REPO / "docs" / "images" / "receipt.png"
CONFIG = "configs/ocr/pp_ocrv6_small.yml"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rapidocr") is None,
    reason="the weights are in the wheel of rapidocr: pip install -e '.[ocr]'",
)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A tool or module in a process of its own."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=REPO,
        env=os.environ | {"PYTHONUTF8": "1", "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


infer = functools.partial(run_tool, "infer")


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def data(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def texts(path: Path) -> list[str]:
    return [line["text"] for line in data(path)["lines"]]


@pytest.fixture(scope="module")
def from_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What reading the receipt from the config wrote."""
    out = tmp_path_factory.mktemp("from_config")
    succeeds(run("tools/infer.py", "-c", CONFIG, "--image_file", RECEIPT, "--output_dir", out))
    return out


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact that tools/export_model.py wrote."""
    out = tmp_path_factory.mktemp("artifact")
    done = run("tools/export_model.py", "-c", CONFIG, "--output_dir", out)
    succeeds(done)
    assert done.stdout == f"wrote {out / 'pp_ocrv6_small'}\n"
    return out / "pp_ocrv6_small"


def test_an_image_from_a_config(from_config: Path) -> None:
    assert sorted(p.name for p in from_config.iterdir()) == ["receipt.json", "receipt.png"]
    page = data(from_config / "receipt.json")
    assert list(page) == ["source", "width", "height", "page", "lines", "seconds"]
    assert (page["source"], page["page"]) == (str(RECEIPT), 1)
    assert (page["width"], page["height"]) == (700, 1100)
    assert {"detect", "recognize", "total"} <= page["seconds"].keys()
    for line in page["lines"]:
        assert list(line) == ["text", "score", "polygon", "words"]
        assert 0.5 <= line["score"] <= 1
        assert " ".join(word["text"] for word in line["words"]) == line["text"]
        for word in line["words"]:
            assert "".join(char["text"] for char in word["chars"]) == word["text"]
            assert np.shape([char["polygon"] for char in word["chars"]]) == (len(word["chars"]), 4, 2)
    lines = [line["text"] for line in page["lines"]]
    assert lines[0] == "HARBOUR STREET GROCERS" and lines[-1] == "Thank you for your visit!"
    assert lines[lines.index("TOTAL EUR") + 1] == "33.62"
    drawn = vision_image.read(from_config / "receipt.png")
    assert drawn.shape[0] == 1100 and drawn.shape[1] > 1400  # the image and what was read, side by side


def test_an_artifact_reads_the_same(artifact: Path, tmp_path: Path) -> None:
    both = []
    for name, model in (("config", ("-c", CONFIG)), ("artifact", ("--model_dir", artifact))):
        out = ("--engine", "xla", "--output_dir", tmp_path / name, "--no_draw")
        succeeds(infer(*model, "--image_file", RECEIPT, *out))
        assert [p.name for p in (tmp_path / name).iterdir()] == ["receipt.json"]
        both.append(data(tmp_path / name / "receipt.json"))
    expected, found = both
    assert expected.pop("seconds").keys() == found.pop("seconds").keys()
    assert found == expected


def test_a_damaged_artifact(artifact: Path, tmp_path: Path) -> None:
    weights = artifact / "recognizer" / "program_weights.safetensors"
    whole = weights.read_bytes()
    try:
        weights.write_bytes(whole[:1000])
        done = infer("--model_dir", artifact, "--image_file", RECEIPT, "--output_dir", tmp_path / "out")
    finally:
        weights.write_bytes(whole)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {weights}: ") and "\n\n" not in done.stderr.strip()
    assert not (tmp_path / "out").exists()


def test_a_folder_with_bad_files(artifact: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "good.png").write_bytes(RECEIPT.read_bytes())
    (folder / "empty.png").write_bytes(b"")
    (folder / "letter.png").write_text("Dear all,", encoding="utf-8")
    jpeg = io.BytesIO()
    Image.open(RECEIPT).convert("RGB").save(jpeg, "JPEG")
    (folder / "cut.jpg").write_bytes(jpeg.getvalue()[:20_000])
    (folder / "notes.txt").write_text("not an image", encoding="utf-8")
    done = infer("--model_dir", artifact, "--image_dir", folder, "--output_dir", out)
    assert done.returncode == 1
    assert sorted(p.name for p in out.iterdir()) == ["good.json", "good.png"]
    assert "33.62" in texts(out / "good.json")
    assert "3 failed:" in done.stderr and "notes.txt" not in done.stderr
    for name, problem in (
        ("cut.jpg", "the image could not be decoded"),
        ("empty.png", "the image is empty"),
        ("letter.png", "the image is not of a known format"),
    ):
        assert f"{folder / name}: {problem}" in done.stderr


def test_a_pdf_of_several_pages(from_config: Path, artifact: Path, tmp_path: Path) -> None:
    read = Page.from_dict(data(from_config / "receipt.json"))
    page = dataclasses.replace(read, image=vision_image.read(RECEIPT))
    pdf = tmp_path / "slips.pdf"
    Document((page, page)).to_searchable_pdf(pdf)
    out = tmp_path / "out"
    succeeds(infer("--model_dir", artifact, "--pdf_file", pdf, "--output_dir", out))
    names = [f"slips_page{number}.{kind}" for number in (1, 2) for kind in ("json", "png")]
    assert sorted(p.name for p in out.iterdir()) == names
    for number in (1, 2):
        found = data(out / f"slips_page{number}.json")
        assert (found["page"], found["source"]) == (number, str(pdf))
        lines = [line["text"] for line in found["lines"]]
        assert lines[lines.index("TOTAL EUR") + 1] == "33.62"


def test_a_video(artifact: Path, tmp_path: Path) -> None:
    image = vision_image.read(RECEIPT)
    clip, out = tmp_path / "clip.mp4", tmp_path / "out"
    with VideoWriter(clip, 4.0, image.shape[:2]) as video:
        for _ in range(3):
            video.write(image)
    succeeds(infer("--model_dir", artifact, "--video_file", clip, "--output_dir", out))
    assert sorted(p.name for p in out.iterdir()) == ["clip.jsonl", "clip.mp4"]
    frames = [json.loads(line) for line in (out / "clip.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(frame["frame"], frame["time"]) for frame in frames] == [(0, 0.0), (1, 0.25), (2, 0.5)]
    assert all("TOTAL EUR" in [line["text"] for line in frame["lines"]] for frame in frames)
    with VideoReader(out / "clip.mp4") as video:
        assert (sum(1 for _ in video), video.fps, video.size_hw) == (3, 4.0, image.shape[:2])


EMPTY, LETTER, NOTHING, SLIP = "empty.png", "letter.png", "nothing.png", str(RECEIPT)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-c", CONFIG, "--image_file", NOTHING], 2, "there is no such file"),
        (["-c", CONFIG, "--image_dir", NOTHING], 2, "there is no such folder"),
        (["-c", CONFIG, "--image_file", LETTER], 1, "the image is not of a known format"),
        (["-c", CONFIG, "--image_file", EMPTY], 1, "the image is empty"),
        (["-c", CONFIG, "--image_file", "scan.pdf"], 1, "hand it to --pdf_file"),
        (["-c", CONFIG, "--pdf_file", "scan.pdf"], 1, "this is no PDF that can be read"),
        (["-c", CONFIG, "--pdf_file", LETTER], 1, "this is no PDF that can be read"),
        (["-c", CONFIG, "--video_file", EMPTY], 1, "the video is empty"),
        (["-c", "configs/ocr/pp_ocrv6_smal.yml", "--image_file", SLIP], 2, "pp_ocrv6_small.yml?"),
        (["--model_dir", NOTHING, "--image_file", SLIP], 2, "unknown model"),
        (["-c", CONFIG, "--image_file", SLIP, "--device", "tpu:7"], 2, "received: 'tpu:7'"),
        (
            ["-c", CONFIG, "--image_file", SLIP, "-o", "pipeline.detector.optionz.x=1"],
            2,
            "did you mean 'options'?",
        ),
        (
            ["-c", CONFIG, "--image_file", SLIP, "-o", "pipeline.options.drop_scor=1"],
            2,
            "command line -o pipeline.options.drop_scor=1: drop_scor: unknown key",
        ),
        (
            ["-c", CONFIG, "--image_file", SLIP, "-o", "pipeline.detector.options.max_aspect=wide"],
            2,
            "max_aspect: wrong type",
        ),
    ],
)
def test_mistakes_are_told_in_one_paragraph(
    arguments: list[str], code: int, said: str, from_config: Path, tmp_path: Path
) -> None:
    (tmp_path / EMPTY).write_bytes(b"")
    (tmp_path / LETTER).write_text("Dear all,", encoding="utf-8")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4\nnothing more")
    here = {EMPTY, LETTER, NOTHING, "scan.pdf"}
    done = infer(*(tmp_path / a if a in here else a for a in arguments), "--output_dir", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    paragraph = done.stderr.strip().splitlines()
    assert len(paragraph) <= 6 and all(paragraph), done.stderr
    assert not list((tmp_path / "out").glob("*"))


def test_the_results_have_no_place(artifact: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    done = infer("--model_dir", artifact, "--image_file", RECEIPT, "--output_dir", taken)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {taken}: a file stands where a folder is needed")


def test_a_model_that_nobody_knows() -> None:
    code = "from ocr import predictor\ntry:\n    predictor('pp_ocrv6_smal')\nexcept ValueError as e:\n    print(e)"
    done = run("-c", code)
    succeeds(done)
    assert "unknown model" in done.stdout
    assert "did you mean 'pp_ocrv6_small'?" in done.stdout


def test_the_weights_are_what_they_should_be() -> None:
    done = run("-m", "zoo", "verify", "pp_ocrv6_small_det")
    succeeds(done)
    assert done.stdout.startswith("weights: ok")
    done = run("-m", "zoo", "verify", "pp_ocrv6_smal_det")
    assert done.returncode == 1 and "there are no weights of this name" in done.stderr
