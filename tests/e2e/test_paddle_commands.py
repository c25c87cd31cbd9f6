"""The commands that docs/paddle.md shows side by side: Paddle's, as they are printed, do what ours do.

By default each pair is read and what it asks of the framework compared; the slow tests run every pair on images, videos
and data with name-seeded weights and compare all files that are written, to the last bit.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import framework
from detection.data.known_classes import COCO_CATEGORY_IDS, COCO_CLASSES
from framework.commands import main
from framework.config import build, load
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.inference import Runtime
from framework.interop.named_weights import named_weights
from framework.interop.paddle_runs import name_of_checkpoint
from framework.vision import image as vision_image
from framework.vision.video import VideoWriter
from framework.workflow.domain.config_file import ConfigFile
from framework.workflow.domain.domain import all_domains, find_config
from framework.workflow.domain.options import make_options
from framework.workflow.train.run import Evaluation
from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]
TEXT = (REPO / "docs" / "paddle.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `((?:python (?:tools|deploy)/|paddleocr )[^`]+ -[^`]+)` \| `(oar [^`]+)` \|$", re.M)
PAIRS = [(left, right) for left, right in ROW.findall(TEXT)]
# What stands for weights and data in the commands, and which pairs make what later ones need.
GROUPS = {
    "picodet": "picodet_s_320_coco_lcnet",
    "dino": "dino_r50_4scale_1x_coco",
    "higherhrnet": "higherhrnet_hrnet_w32_512",
    "liteseg": "optic_disc",
    "contrast": "contrast",
    "ocr": "receipt.png",
}
NEEDED = {"liteseg": "pretrained=null", "picodet": "optim.learning_rate.warmup_steps=1"}
TOOLS = {"val": "eval", "predict": "infer", "export_model": "export"}


def read_command(line: str) -> tuple[str, list[str]]:
    """The subcommand of `oar` that a printed command calls, and its arguments."""
    words = shlex.split(line)
    if words[0] == "oar":
        return words[1], words[2:]
    if words[0] == "paddleocr":
        return "ocr", words[2:] if words[1] == "ocr" else words[1:]
    name = Path(words[1]).stem
    return ("infer", words[2:]) if words[1].startswith("deploy/") else (TOOLS.get(name, name), words[2:])


def test_the_document_has_pairs() -> None:
    assert len(PAIRS) >= 20
    for group, mark in GROUPS.items():
        assert [left for left, _ in PAIRS if mark in left], group
    assert all(any(mark in left for mark in GROUPS.values()) for left, _ in PAIRS)


# -- what a command asks of the framework ------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the commands call, in place of doing it."""
    calls: list[dict[str, Any]] = []

    def note(kind: str, answer: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append({"call": kind, "args": args, **kwargs})
            return answer

        return call

    class Report:
        failed = ()
        exit_code = 0
        notes: ClassVar[list[str]] = []

        def summary(self) -> str:
            return ""

    monkeypatch.setattr("framework.workflow.train.run.train", note("train", {}))
    monkeypatch.setattr("framework.workflow.train.run.evaluate_classes", note("eval", Evaluation({}, None)))
    monkeypatch.setattr("framework.workflow.export.export.write_artifact", note("export", Path("made")))
    monkeypatch.setattr("framework.commands.infer.open_predictor", note("open", None))
    monkeypatch.setattr("framework.commands.infer.predict_files", note("predict", Report()))
    monkeypatch.setattr("framework.commands.infer.predict_sources", note("predict", Report()))
    monkeypatch.setattr("ocr.commands.ocr.OCRPredictor", type(None))
    monkeypatch.setattr("ocr.commands.ocr._read_files", lambda *_: (page for page in ()))
    monkeypatch.setattr(  # the files are not there
        "framework.commands.infer.open_sources", lambda names, *_, **more: contextlib.nullcontext(list(names))
    )
    monkeypatch.setattr("framework.commands.infer.check_sources", lambda *sources, **more: None)
    return calls


def settled(value: Any) -> Any:
    """A value of a call with one form for what means the same: paths, checkpoints of a run, what is not given."""
    if isinstance(value, Path) or (isinstance(value, str) and "/" in value):
        path = Path(value)
        named = name_of_checkpoint(path)
        return (named[0] if named else path).as_posix().partition("/checkpoints/")[0]
    if isinstance(value, Runtime):
        return (str(value.device).lower(), value.precision)
    if isinstance(value, dict):
        return {key: settled(one) for key, one in value.items() if one is not None}
    return [settled(one) for one in value] if isinstance(value, list | tuple) else value


def resolve(call: dict[str, Any]) -> Any:
    """A call with its config and overrides as the settings that they give."""
    args = list(call.pop("args"))
    if call["call"] == "predict":  # files are named as arguments, or by an option of their kind
        named = [call.pop(option, None) for option in ("image_file", "image_dir", "pdf_file", "video_file")]
        args[2:] = [[*(name for name in named if name is not None), *(args[2] if args[2:] else ())]]
    overrides = call.pop("overrides", ())
    if args and isinstance(args[0], ConfigFile):
        args[:2] = [[args[0].name, args[0].plain]]
    elif args and isinstance(args[0], str) and not (REPO / args[0]).is_dir():
        where = args[0]
        if not where.startswith(("output", "inference_model", "./inference_model")):
            changes = args.pop(1) if call["call"] == "eval" else overrides
            if call["call"] == "export":
                changes = args.pop(2)
            config = find_config(args[0])
            args[0] = [config.stem, load(config, tuple(changes)).plain()]
    return settled({**call, "args": args})


def settle_options(given: dict[str, Any]) -> set[str]:
    """The options that each domain makes of those of a command, of the domains that take them."""
    made = set()
    for domain in all_domains():
        with contextlib.suppress(ConfigError):
            made.add(repr(make_options(domain.options, given, domain.name)))
    return made


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=[f"{i:02}" for i in range(len(PAIRS))])
def test_both_ask_for_the_same(
    left: str, right: str, asked: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs/images").mkdir(parents=True)
    shutil.copy(REPO / "docs/images/receipt.png", "docs/images")
    found = []
    for line in (left, right):
        name, arguments = read_command(line)
        status = main([name, *arguments])
        assert status == 0
        options = [settle_options(call.pop("options")) for call in asked if "options" in call]
        found.append(([resolve(call) for call in asked], options))
        asked.clear()
    assert found[0][0] == found[1][0] and found[0][0]
    assert all(ours & theirs for ours, theirs in zip(found[0][1], found[1][1]))


# -- what a command writes ---------------------------------------------------------------------------------------------


def seed(config: str, file: Path) -> None:
    """Weights from the names of the parameters, as Paddle writes them."""
    model = build(bind_experiment(load(find_config(config))).model)
    framework.save(named_weights(model.state_shapes()), file)


def make_place(folder: Path, group: str) -> Path:
    """A folder with what the commands of a group read."""
    rng = np.random.default_rng(0)
    smooth = vision_image.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (120, 160))
    vision_image.write(folder / "demo" / "000000014439.jpg", smooth)
    with VideoWriter(folder / "demo" / "clip.mp4", 10.0, (120, 160)) as video:
        for step in range(3):
            video.write(np.roll(smooth, 8 * step, axis=1))
    (folder / "docs" / "images").mkdir(parents=True)
    shutil.copy(REPO / "docs" / "images" / "receipt.png", folder / "docs" / "images")
    for left, _ in PAIRS:
        if GROUPS[group] in left:
            for name in re.findall(r"=?(\w+)\.pdparams", left):
                if name != "model" and not (folder / f"{name}.pdparams").exists():
                    seed(name, folder / f"{name}.pdparams")
    if group == "picodet":
        write_coco(folder, smooth)
    if group == "liteseg":
        write_optic_discs(folder, rng)
    return folder


def write_coco(folder: Path, smooth: np.ndarray) -> None:
    categories = [{"id": i, "name": name} for i, name in zip(COCO_CATEGORY_IDS, COCO_CLASSES)]
    experiment = bind_experiment(load(find_config("picodet_s_320_coco_lcnet")))
    for loader in (experiment.data.train, experiment.data.eval):
        assert loader is not None
        dataset: Any = loader.dataset
        images = [{"id": i, "file_name": f"{i:012}.jpg", "width": 160, "height": 120} for i in (1, 2, 3, 4)]
        boxes = [
            {"id": i, "image_id": i, "category_id": 1, "bbox": [20, 20, 60, 50], "area": 3000, "iscrowd": 0}
            for i in (1, 2, 3, 4)
        ]
        labels = {"images": images, "annotations": boxes, "categories": categories}
        root = folder / dataset.root
        annotations, folder_of_images = root / dataset.annotations, root / dataset.images
        annotations.parent.mkdir(parents=True, exist_ok=True)
        annotations.write_text(json.dumps(labels), encoding="utf-8")
        for one in images:
            vision_image.write(folder_of_images / one["file_name"], smooth)


def write_optic_discs(folder: Path, rng: np.random.Generator) -> None:
    root = folder / "data" / "optic_disc_seg"
    lines = []
    for number in (1, 2, 3, 4):
        smooth = vision_image.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (96, 128))
        mask = np.zeros((96, 128), np.uint8)
        mask[30:60, 40:80] = 1
        vision_image.write(root / "JPEGImages" / f"H{number:04}.jpg", smooth)
        vision_image.write(root / "Annotations" / f"H{number:04}.png", mask)
        lines.append(f"JPEGImages/H{number:04}.jpg Annotations/H{number:04}.png\n")
    for name in ("train_list.txt", "val_list.txt"):
        (root / name).write_text("".join(lines), encoding="utf-8")


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """What can be compared: JSON, images, scores. Logs and artifacts name times and paths."""
    for path in sorted((folder / "output").rglob("*")):
        of_training = path.name == "metrics.jsonl" or "checkpoints" in path.parts
        if path.suffix in (".json", ".jsonl", ".png", ".jpg") and not of_training:
            data = path.read_bytes()
            if path.suffix == ".json":  # a page says how long its reading took
                content = json.loads(data)
                data = repr({**content, "seconds": None} if isinstance(content, dict) else content).encode()
            yield path.relative_to(folder).as_posix(), data


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_both_write_the_same(group: str, tmp_path: Path) -> None:
    places = [make_place(tmp_path / side, group) for side in ("paddle", "oar")]
    printed: list[list[str]] = [[], []]
    for pair in [pair for pair in PAIRS if GROUPS[group] in pair[0]]:
        for place, line, out in zip(places, pair, printed):
            name, arguments = read_command(line)
            if (
                name == "train"
            ):  # no ImageNet weights can be downloaded here; four images are two steps an epoch
                arguments += ["-o", NEEDED[group]]
            done = run_tool(name, *arguments, cwd=place)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            if name == "eval":
                out.append(done.stdout[done.stdout.index("{") :])
    assert printed[0] == printed[1]
    written = [dict(files_of(place)) for place in places]
    assert written[0] == written[1] and (written[0] or group == "none")
