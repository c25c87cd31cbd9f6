"""docs/own_data.md: its commands, pasted in their order, on small data of the layouts that it describes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageFont

from framework.commands import train
from framework.vision import image
from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]
SECTIONS = re.split(r"^## ", (REPO / "docs/own_data.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
COMMANDS = {
    section.partition("\n")[0]: [
        shlex.split(line)[1:]
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    for section in SECTIONS
    if "```sh" in section
}
WRITTEN = {
    "Images with a class": "output/photos_named/*.json",
    "Objects, annotated in COCO's format": "output/cells_found/*.json",
    "Objects, annotated with labelme": "data/outlines/split/val.json",
    "Images with several classes": "output/photos_tagged/*.json",
    "Objects, annotated in YOLO's format": "output/cells_txt/labels/*.txt",
    "Objects, annotated with CVAT": "data/cells_again/split/val.json",
    "Objects, annotated in another program": "data/boxes_coco/split/val.json",
    "What belongs together": "data/tissue_groups/val/images/*.png",
    "Objects, annotated in VOC's format": "output/cells_voc/config.yml",
    "A class for every pixel": "output/tissue_found/*_label.png",
    "Texts with a class": "output/requests_answered/results.jsonl",
    "Text that is drawn": "data/drawn_pages/labels.txt",
    "Documents": "output/scans_again/*.json",
}


def photos(rng: np.random.Generator) -> None:
    """Bright images of cats and dark ones of dogs."""
    for name, value in (("cat", 200), ("dog", 30)):
        for number in range(16):
            write(f"photos/{name}/{number}.jpg", rng.integers(value, value + 50, (90, 120, 3)))


def cells(rng: np.random.Generator) -> None:
    """Squares of three colours, told by COCO and by VOC."""
    names = ("blue", "green", "red")
    images, annotations = [], []
    for number in range(20):
        pixels = rng.integers(200, 255, (160, 200, 3))
        objects = ""
        for kind in range(3):
            x, y = int(rng.integers(0, 20)) + 60 * kind, int(rng.integers(0, 120))
            pixels[y : y + 40, x : x + 40] = np.eye(3, dtype=int)[2 - kind] * 200
            box = {"id": len(annotations) + 1, "image_id": number, "category_id": kind + 1}
            annotations.append({**box, "bbox": [x, y, 40, 40], "area": 1600, "iscrowd": 0})
            sides = f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + 40}</xmax><ymax>{y + 40}</ymax>"
            objects += f"<object><name>{names[kind]}</name><bndbox>{sides}</bndbox></object>"
        write(f"cells/images/{number}.jpg", pixels)
        images.append({"id": number, "file_name": f"{number}.jpg", "height": 160, "width": 200})
        size = "<size><width>200</width><height>160</height></size>"
        write_text(f"cells/annotations/{number}.xml", f"<annotation>{size}{objects}</annotation>")
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    data = {"images": images, "annotations": annotations, "categories": categories}
    write_text("cells/cells.json", json.dumps(data))


def boxes(rng: np.random.Generator) -> None:
    """The same squares, told by a table."""
    cells(rng)
    coco = json.loads(Path("cells/cells.json").read_text(encoding="utf-8"))
    names = {one["id"]: one["name"] for one in coco["categories"]}
    rows = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for one in coco["annotations"]:
        x, y, side, _ = one["bbox"]
        rows.append(
            f"{one['image_id']}.jpg,200,160,{names[one['category_id']]},{x},{y},{x + side},{y + side}"
        )
    write_text("boxes.csv", "\n".join(rows) + "\n")


def outlines(rng: np.random.Generator) -> None:
    """The same squares, told by labelme: rectangles and polygons."""
    cells(rng)
    coco = json.loads(Path("cells/cells.json").read_text(encoding="utf-8"))
    names = {one["id"]: one["name"] for one in coco["categories"]}
    for photo in coco["images"]:
        shapes = []
        for one in coco["annotations"]:
            if one["image_id"] == photo["id"]:
                x, y, side, _ = one["bbox"]
                points = [[x, y], [x + side, y + side]]
                if one["category_id"] == 1:
                    points = [[x, y], [x + side, y], [x + side, y + side], [x, y + side]]
                kind = "polygon" if len(points) == 4 else "rectangle"
                shapes.append({"label": names[one["category_id"]], "points": points, "shape_type": kind})
        stem = Path(photo["file_name"]).stem
        write(f"outlines/{stem}.jpg", image.read(f"cells/images/{stem}.jpg"))
        write_text(f"outlines/{stem}.json", json.dumps({"shapes": shapes, "imagePath": f"{stem}.jpg"}))


def tags(rng: np.random.Generator) -> None:
    """Cats are indoors, and some images of each kind are bright."""
    photos(rng)
    lines = [
        f"photos/{name}/{number}.jpg,{';'.join(['indoors'] * (name == 'cat') + ['bright'] * (number % 2))}"
        for name in ("cat", "dog")
        for number in range(16)
    ]
    write_text("labels.csv", "\n".join(lines) + "\n")


def tissue(rng: np.random.Generator) -> None:
    """Bright squares on dark ground; their masks hold 0 and 255."""
    for number in range(10):
        pixels, mask = rng.integers(0, 60, (128, 128, 3)), np.zeros((128, 128), np.uint8)
        x, y = rng.integers(0, 80, 2)
        pixels[y : y + 40, x : x + 40], mask[y : y + 40, x : x + 40] = 220, 255
        write(f"tissue/images/{number}.png", pixels)
        write(f"tissue/masks/{number}.png", mask)


def requests(rng: np.random.Generator) -> None:
    words = {"play": ("play", "song", "jazz", "album"), "weather": ("rain", "sun", "cold", "snow")}
    rows = [f"{' '.join(rng.choice(words[name], 4))} {n}\t{name}" for n in range(40) for name in words]
    write_text("requests.tsv", "\n".join(["text\tintent", *rows]) + "\n")


def fonts(rng: np.random.Generator) -> None:
    """Pillow's own font, a few words, the letters, and images to draw on."""
    font: Any = ImageFont.load_default(20)
    Path("fonts").mkdir()
    Path("fonts/own.ttf").write_bytes(font.path.getvalue())
    write_text("texts.txt", "some words\nand a number 12\n")
    write_text("dictionary.txt", "\n".join("abcdefghijklmnopqrstuvwxyz0123456789漢") + "\n")
    photos(rng)


def scans(rng: np.random.Generator) -> None:
    """A receipt to read, and pages and lines of grey with texts that nobody could read from them."""
    write("scans/receipt.png", image.read(REPO / "docs/images/receipt.png"))
    quad = [[10, 10], [110, 10], [110, 30], [10, 30]]
    for part, count in (("train", 16), ("test", 4)):
        lines, pages = [], []
        for number in range(count):
            write(f"lines/{part}_{number}.png", rng.integers(0, 256, (32, 100, 3)))
            write(f"pages/{part}_{number}.png", rng.integers(0, 256, (120, 160, 3)))
            lines.append(f"{part}_{number}.png\tNo. {number}\n")
            pages.append(f"{part}_{number}.png\t{json.dumps([{'transcription': 'a', 'points': quad}])}\n")
        Path(f"lines/{part}.txt").write_text("".join(lines), encoding="utf-8")
        Path(f"pages/{part}.txt").write_text("".join(pages), encoding="utf-8")


DATA: dict[str, Callable[[np.random.Generator], None]] = {
    "Images with a class": photos,
    "Images with several classes": tags,
    "Objects, annotated in YOLO's format": cells,
    "Objects, annotated with CVAT": cells,
    "Objects, annotated in another program": boxes,
    "What belongs together": tissue,
    "Objects, annotated in COCO's format": cells,
    "Objects, annotated with labelme": outlines,
    "Objects, annotated in VOC's format": cells,
    "A class for every pixel": tissue,
    "Texts with a class": requests,
    "Text that is drawn": fonts,
    "Documents": scans,
}


def write(name: str, pixels: np.ndarray) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    image.write(name, pixels.astype(np.uint8))


def write_text(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def run(command: str, arguments: list[str]) -> int:
    done = run_tool(command, *arguments, cwd=Path.cwd())
    print(done.stdout, done.stderr)
    return done.returncode


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("section", COMMANDS)
def test_the_data_are_divided_checked_and_shown_and_the_settings_fit(section: str, folder: Path) -> None:
    """What costs little: all but training and what comes after it."""
    DATA[section](np.random.default_rng(0))
    for command, *arguments in COMMANDS[section]:
        if command in ("data", "check"):
            assert run(command, arguments) == 0, (command, arguments)
        if command == "train":
            args = train.parser().parse_args(arguments)
            experiment = train.open_train_config(args, args.opt).experiment
            assert experiment.data.train is not None and len(experiment.data.train.dataset) > 3  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("section", COMMANDS)
def test_the_commands_run_as_they_are_printed(section: str, folder: Path) -> None:
    if section == "Documents":
        pytest.importorskip("rapidocr", reason="the weights are in the wheel of rapidocr")
    DATA[section](np.random.default_rng(0))
    for command, *arguments in COMMANDS[section]:
        assert run(command, arguments) == 0, (command, arguments)
    assert list(folder.glob(WRITTEN[section]))
