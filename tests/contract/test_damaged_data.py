"""Files of data sets with something damaged in them: what comes is a sample or an OarError that names the file.

Texts and JSON are changed in what they say, all files byte by byte, from one seed; `slow` goes on for longer.
"""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from detection.data.coco import CocoDetection
from detection.data.coco_pose import CocoPose
from detection.data.docbank import DocBank
from detection.data.voc import VocDetection
from framework.core.errors import ConfigError, OarError
from framework.io.dataset import Dataset
from framework.vision import image
from nlp.data.annotated import AnnotatedText
from nlp.data.classification import TextClassification
from nlp.data.parallel import ParallelText
from nlp.data.plain import TextLines
from nlp.data.questions import QuestionAnswers
from nlp.data.tagged import TaggedText
from nlp.data.triples import TextTriples
from ocr.data.forms import XFUND, FormFiles
from ocr.data.receipts import SROIE
from segmentation.data.coco import CocoMasks
from segmentation.data.custom import MaskFolder, MaskListFile
from zoo.classification.benchmarks import Cifar10, Mnist
from zoo.classification.data import ImageFolder, ListFile

VALUES = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    2**63,
    float("nan"),
    float("inf"),
    "",
    "x",
    "7",
    [],
    {},
    [[]],
    [1, "a"],
)
BOXES = {
    "images": [{"id": 1, "file_name": "a.png", "height": 8, "width": 10}, {"id": 2, "file_name": "b.png"}],
    "categories": [{"id": 3, "name": "cat", "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]}],
    "annotations": [
        {
            **{"id": 5, "image_id": 1, "category_id": 3, "bbox": [1, 1, 4, 4], "area": 16, "iscrowd": 0},
            **{"keypoints": [1, 1, 2, 3, 3, 1], "segmentation": [[1, 1, 5, 1, 5, 5]]},
        },
        {
            **{"id": 6, "image_id": 1, "category_id": 3, "bbox": [0, 0, 9, 8], "iscrowd": 1},
            **{"keypoints": [0] * 6, "segmentation": {"size": [8, 10], "counts": [0, 40, 40]}},
        },
    ],
}
FORM = [
    {
        **{
            "transcription": "Name",
            "text": "Name",
            "points": [[1, 1], [4, 1], [4, 3], [1, 3]],
            "box": [1, 1, 4, 3],
        },
        **{"label": "question", "id": 0, "linking": [[0, 1]]},
    },
    {
        **{
            "transcription": "Ann",
            "text": "Ann",
            "points": [[5, 1], [9, 1], [9, 3], [5, 3]],
            "box": [5, 1, 9, 3],
        },
        **{"label": "answer", "id": 1, "linking": [[0, 1]]},
    },
]
FORM_IMAGE = {"fname": "a.png", "width": 10, "height": 8}
ANSWERS = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "a red fox",
                    "qas": [
                        {"id": "q", "question": "what?", "answers": [{"text": "fox", "answer_start": 6}]}
                    ],
                }
            ]
        }
    ]
}
VOC = (
    "<annotation><size><width>10</width><height>8</height></size><object><name>cat</name><bndbox><xmin>1</xmin>"
    "<ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox></object></annotation>"
)


class Case(NamedTuple):
    """A data set and those of its files that are damaged."""

    open: Callable[[Path], Dataset]
    files: tuple[str, ...]


CASES = {
    "coco": Case(lambda root: CocoDetection(root, Path("a.json"), keypoints=True), ("a.json",)),
    "pose": Case(lambda root: CocoPose(root, Path("a.json")), ("a.json",)),
    "coco_masks": Case(lambda root: CocoMasks(root, Path("a.json")), ("a.json",)),
    "voc": Case(lambda root: VocDetection(root / "voc"), ("voc/a.xml", "voc/a.png")),
    "voc_list": Case(lambda root: VocDetection(root, "list"), ("list.txt",)),
    "docbank": Case(lambda root: DocBank(root / "docbank"), ("docbank/a.txt", "docbank/a.png")),
    "folder": Case(lambda root: ImageFolder(root / "zip.zip"), ("zip.zip",)),
    "list": Case(
        lambda root: ListFile(root, root / "files.txt", root / "names.txt"), ("files.txt", "names.txt")
    ),
    "mnist": Case(lambda root: Mnist(root / "images", root / "labels.gz"), ("images", "labels.gz")),
    "cifar": Case(lambda root: Cifar10(root, "test"), ("test_batch.bin",)),
    "masks": Case(
        lambda root: MaskFolder(root, 3, images="voc", masks="masks", channels=None),
        ("masks/a.png", "voc/a.png"),
    ),
    "arrays": Case(
        lambda root: MaskFolder(root, 3, images="arrays", masks="labels", channels=4),
        ("arrays/a.npy", "labels/a.npy"),
    ),
    "mask_list": Case(lambda root: MaskListFile(root, 3, root / "masks.txt"), ("masks.txt",)),
    "table": Case(lambda root: TextClassification(root / "a.tsv", text="text", label="label"), ("a.tsv",)),
    "commas": Case(lambda root: TextClassification(root / "a.csv", separator=","), ("a.csv",)),
    "lines": Case(lambda root: TextClassification(root / "a.jsonl", "text", "label", "pair"), ("a.jsonl",)),
    "triples": Case(lambda root: TextTriples(root / "a.tsv"), ("a.tsv",)),
    "tags": Case(lambda root: TaggedText(root / "a.conllu"), ("a.conllu",)),
    "tag_lines": Case(lambda root: TaggedText(root / "t.jsonl", "w", "t", "characters"), ("t.jsonl",)),
    "entities": Case(lambda root: AnnotatedText(root / "e.json"), ("e.json",)),
    "questions": Case(lambda root: QuestionAnswers(root / "q.json"), ("q.json",)),
    "parallel": Case(lambda root: ParallelText(root / "a.tsv", root / "a.csv"), ("a.tsv", "a.csv")),
    "forms": Case(lambda root: FormFiles(root, (Path("forms.txt"),)), ("forms.txt",)),
    "xfund": Case(lambda root: XFUND(root, Path("xfund.json")), ("xfund.json",)),
    "receipts": Case(lambda root: SROIE(root / "sroie"), ("sroie/box/a.csv", "sroie/key/a.json")),
    "plain": Case(lambda root: TextLines(root / "a.tsv", block=4), ("a.tsv",)),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (8, 10, 3)).astype(np.uint8)
    for name in ("a.png", "b.png", "voc/a.png", "docbank/a.png", "masks/a.png", "sroie/img/a.jpg"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        image.write(folder / name, pixels if "masks" not in name else np.zeros((8, 10), np.uint8))
    for name, array in (("arrays", np.zeros((8, 10, 4), np.uint16)), ("labels", np.zeros((8, 10), np.uint8))):
        (folder / name).mkdir()
        np.save(folder / name / "a.npy", array)
    with zipfile.ZipFile(folder / "zip.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "a.png", "cat/a.png")
        archive.write(folder / "b.png", "dog/b.png")
    (folder / "images").write_bytes(
        bytes([0, 0, 8, 3, *(0, 0, 0, 2), *(0, 0, 0, 3), *(0, 0, 0, 3)]) + bytes(18)
    )
    (folder / "labels.gz").write_bytes(gzip.compress(bytes([0, 0, 8, 1, *(0, 0, 0, 2), 1, 2])))
    (folder / "test_batch.bin").write_bytes(bytes(3073 * 2))
    texts = {
        "a.json": json.dumps(BOXES),
        "q.json": json.dumps(ANSWERS),
        "forms.txt": f"a.png\t{json.dumps(FORM)}\n",
        "xfund.json": json.dumps({"documents": [{"img": FORM_IMAGE, "document": FORM}]}),
        "sroie/box/a.csv": "1,1,8,1,8,3,1,3,SHOP LTD\n1,4,8,4,8,6,1,6,TOTAL 9.50\n",
        "sroie/key/a.json": json.dumps({"company": "SHOP LTD", "total": "9.50"}),
        "voc/a.xml": VOC,
        "docbank/a.txt": "a\t10\t20\t300\t400\t0\t0\t0\tF\ttitle\nb\t310\t20\t900\t400\t0\t0\t0\tF\ttitle\n",
        "list.txt": "voc/a.png voc/a.xml\n",
        "files.txt": "a.png 0\nb.png 1\n",
        "names.txt": "cat\ndog\n",
        "masks.txt": "voc/a.png masks/a.png\n",
        "a.tsv": "text\tlabel\tpair\ngood one\tpos\tx\nbad\tneg\ty\n",
        "a.csv": 'good,pos\n"bad, one",neg\nbad,neg\n',
        "a.jsonl": '{"text": "a", "label": "x", "pair": "c"}\n{"text": ["b", "d"], "label": 1, "pair": "c"}\n',
        "e.json": '[["one two", {"entities": [[0, 3, "X"], [4, 7, "Y"]]}]]',
        "t.jsonl": '{"w": ["ab", "c"], "t": ["X", "Y"]}\n',
        "a.conllu": "# text\n1\tsi\tsi\tNOUN\n2\tno\tno\tVERB\n\n1\tsi\tsi\tNOUN\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def change_values(data: Any, rng: random.Random) -> Any:
    """A copy of JSON data with another value, or without one, at some place."""
    changed = deepcopy(data)
    places = [
        (holder, key)
        for holder in holders(changed)
        for key in (holder if isinstance(holder, dict) else range(len(holder)))
    ]
    for holder, key in rng.sample(places, min(len(places), rng.choice((1, 1, 2)))):
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder.pop(key, None)
        else:
            holder[key] = rng.choice(VALUES)
    return changed


def holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for child in value.values() if isinstance(value, dict) else value:
            yield from holders(child)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0:
                del changed[place:]
            case 1:
                del changed[place : place + rng.randrange(1, 8)]
            case 2:
                changed[place:place] = rng.choice(
                    (b"\n", b"\t", b"\0", b"\xff", b"9" * 5000, b"[" * 2000, b"{", b'"')
                )
            case 3:
                changed[place:place] = changed[: rng.randrange(1, 40)]
            case _ if place < len(changed):
                changed[place] = rng.randrange(256)
    return bytes(changed)


def mutations(data: bytes, name: str, rng: random.Random) -> Iterator[bytes]:
    while True:
        if name.endswith((".json", ".jsonl")) and rng.random() < 0.7:
            rows = [change_values(json.loads(row), rng) for row in data.decode().splitlines()]
            yield "\n".join(json.dumps(row) for row in rows).encode()
        else:
            yield change_bytes(data, rng)


def read_all(case: Case, root: Path) -> int:
    """Of a data set all that training asks for; 1 where it is refused. Raises: what is no OarError."""
    try:
        dataset = case.open(root)
        _ = getattr(dataset, "class_names", ())
        count = len(dataset)
    except OarError as error:
        named = str(root) in str(error) or "are not there" in str(error)
        assert named or isinstance(error, ConfigError), f"the error names no file: {error}"
        return 1
    for index in range(count):
        try:
            dataset[index]
        except OarError as error:
            assert str(root) in str(error) or "sample" in str(error), f"the error names no file: {error}"
            return 1
    return 0


def damage(case: str, root: Path, rounds: int, seed: int) -> int:
    """How many of the rounds were refused."""
    rng, refused = random.Random(seed), 0
    assert read_all(CASES[case], root) == 0, "the file is good before it is damaged"
    for name in CASES[case].files:
        path, good = root / name, (root / name).read_bytes()
        try:
            for number, data in zip(range(rounds), mutations(good, name, rng)):
                path.write_bytes(data)
                try:
                    refused += read_all(CASES[case], root)
                except Exception as error:
                    raise AssertionError(f"{case}, {name}, round {number}: {data[:2000]!r}") from error
        finally:
            path.write_bytes(good)
    return refused


@pytest.mark.parametrize("case", CASES)
def test_damaged_files_end_in_errors_of_ours(case: str, root: Path) -> None:
    assert damage(case, root, 40, seed=1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_many_damaged_files(case: str, root: Path) -> None:
    damage(case, root, 1500, seed=2)
