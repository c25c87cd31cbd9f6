"""Images that a data set draws, written with their labels: texts in PaddleOCR's formats, boxes in COCO's."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from framework.config import Kind, Tree, bind, dump, from_plain, override, packages_of_domain
from framework.core.disk import disk_errors, write_file
from framework.core.errors import FormatError, InputError
from framework.core.types import JSON
from framework.io.dataset import Dataset, Subset
from framework.io.loader import DataLoader
from framework.vision import image
from framework.vision.sample import Sample

LABELS, SETTINGS, IMAGES, COCO = "labels.txt", "settings.yml", "images", "annotations.json"
_UNREADABLE = "###"  # PaddleOCR's transcription of texts that do not count
_BATCH = 16


@runtime_checkable
class WritesLabels(Protocol):
    """A data set that says itself how its labels are written, in a file of another name."""

    label_file: ClassVar[str]

    def label_line(self, sample: Sample, name: str) -> str:
        """The line, without its end, of an image that was written as `name`."""
        ...


class SynthesisReport(NamedTuple):
    """What `synthesize` wrote."""

    labels: Path
    written: int
    """Images of this call."""
    before: int
    """Images that were there."""

    def __str__(self) -> str:
        earlier = f", {self.before} of them from before" if self.before else ""
        return f"{self.labels}: {self.written + self.before} images{earlier}"


def synthesize(
    dataset: str,
    output: str | Path,
    settings: Sequence[str] = (),
    *,
    suffix: Literal[".jpg", ".png"] = ".jpg",
    workers: int = 2,
) -> SynthesisReport:
    """Write the samples of a data set that draws them to `<output>/images`, and their texts to `<output>/labels.txt`.

    A line of the labels is `images/<number>.jpg`, a tab, and the text of a line; or of a page, JSON of
    `[{"transcription": ..., "points": [[x, y], ...]}, ...]`, in which "###" marks what cannot be read. Of a data set
    with classes it is JSON of the image's size and its boxes, and `<output>/annotations.json` has all of them in COCO's
    format, the classes numbered from 1; `text` of an annotation is what the box says.
    A data set that `WritesLabels` has a file and a form of its own: of tables that is PubTabNet's, `labels.jsonl`.
    `<output>/settings.yml` has what was drawn with. Where that is there already with the same settings, the images
    that are missing are added: after an interruption, or with a greater `count`.

    Args:
        dataset: The name of a registered data set, such as SyntheticTextLines. `settings` are its fields, "key=value".
        suffix: Of the images: PNG keeps every pixel.
        workers: Threads.

    Raises:
        ConfigError: there is no such data set or setting.
        InputError: the output is something else, or was drawn with other settings; or what it draws with is not there.
        FormatError: the labels that are there are damaged.
        DiskError: the disk takes no more; what was written stays and can be continued.
    """
    output = Path(output)
    tree: Tree = from_plain({"type": dataset})
    for text in settings:
        tree = override(tree, text)
    source: Any = bind(tree, Annotated[Dataset, Kind("dataset")], packages_of_domain("ocr"))
    count = len(source)
    # The count is left out: more of the same can be added.
    plain = dataclasses.replace(source, count=1) if hasattr(source, "count") else source
    stored = f"# images: {suffix}\n{dump(plain)}"
    own = _find_label_writer(source)
    file = LABELS if own is None else own.label_file
    before = _check_output(output, stored, file)
    names = tuple(getattr(source, "class_names", ()))
    if before >= count:
        return SynthesisReport(output / file, 0, before)
    with disk_errors(output):
        (output / IMAGES).mkdir(parents=True, exist_ok=True)
        write_file(output / SETTINGS, stored.encode("utf-8"))
    loader = DataLoader(
        Subset(source, range(before, count)), batch_size=_BATCH, collate_fn=list, num_workers=workers
    )
    number = before
    with disk_errors(output), (output / file).open("a", encoding="utf-8", newline="\n") as labels:
        for batch in loader:
            for sample in batch:
                name = f"{IMAGES}/{number:08d}{suffix}"
                image.write(output / name, sample.image)
                line = own.label_line(sample, name) if own else f"{name}\t{describe(sample, names)}"
                labels.write(f"{line}\n")
                number += 1
            labels.flush()
    if names:
        with disk_errors(output):
            write_file(output / COCO, json.dumps(collect_coco(output / file, names)).encode("utf-8"))
    return SynthesisReport(output / file, number - before, before)


def _find_label_writer(source: object) -> WritesLabels | None:
    return source if isinstance(source, WritesLabels) else None


def describe(sample: Sample, class_names: Sequence[str] = ()) -> str:
    """What stands behind the image's name: its text, or JSON of its polygons and texts, or of its boxes and classes.

    Raises:
        InputError: the sample has no text, nor boxes and classes.
    """
    if class_names and sample.boxes is not None and sample.labels is not None:
        texts = sample.text if isinstance(sample.text, tuple) else ("",) * len(sample.boxes)
        objects = [
            {"label": class_names[label], "bbox": [round(value, 1) for value in box], "text": text}
            for box, label, text in zip(sample.boxes.tolist(), sample.labels.tolist(), texts, strict=True)
        ]
        height, width = sample.image.shape[:2]
        return json.dumps({"width": width, "height": height, "objects": objects}, ensure_ascii=False)
    if isinstance(sample.text, str):
        return sample.text
    if sample.text is None or sample.polygons is None:
        raise InputError(
            "the data set gives no texts",
            where=sample.id,
            allowed="samples with a text, or with polygons and a text each",
        )
    valid = [True] * len(sample.text) if sample.valid is None else sample.valid.tolist()
    rows = [
        {
            "transcription": text if readable else _UNREADABLE,
            "points": [[round(x, 1), round(y, 1)] for x, y in polygon.tolist()],
        }
        for text, polygon, readable in zip(sample.text, sample.polygons, valid, strict=True)
    ]
    return json.dumps(rows, ensure_ascii=False)


def collect_coco(labels: Path, class_names: Sequence[str]) -> dict[str, JSON]:
    """The lines that `describe` wrote of boxes, [left, top, right, bottom], as COCO's lists.

    Raises:
        FormatError: a line is no such line.
    """
    images, annotations = [], []
    with labels.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            name, _, text = line.partition("\t")
            try:
                said = json.loads(text)
                images.append(
                    {"id": number + 1, "file_name": name, "width": said["width"], "height": said["height"]}
                )
                for one in said["objects"]:
                    left, top, right, bottom = one["bbox"]
                    box = [left, top, round(right - left, 1), round(bottom - top, 1)]
                    annotations.append(
                        {
                            "id": len(annotations) + 1,
                            "image_id": number + 1,
                            "category_id": class_names.index(one["label"]) + 1,
                            "bbox": box,
                            "area": round(box[2] * box[3], 1),
                            "iscrowd": 0,
                            "text": one["text"],
                        }
                    )
            except (ValueError, KeyError, TypeError) as error:
                raise FormatError(
                    "the labels are not those that were written here",
                    where=f"{labels}, line {number + 1}",
                    received=repr(text[:60]),
                    fix="name another folder",
                ) from error
    categories = [{"id": number, "name": name} for number, name in enumerate(class_names, 1)]
    return {"images": images, "annotations": annotations, "categories": categories}


def _check_output(output: Path, stored: str, file: str) -> int:
    """How many images are there of the same settings; a line that was cut off is taken away."""
    settings, labels = output / SETTINGS, output / file
    if not settings.is_file():
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise InputError(
                "the output is there already", where=output, fix="name another folder, or move it away"
            )
        return 0
    if settings.read_text(encoding="utf-8") != stored:
        raise InputError(
            "the output was drawn with other settings",
            where=settings,
            fix="name another folder, or repeat the settings to go on with it",
        )
    if not labels.is_file():
        return 0
    data = labels.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    count = whole.count(b"\n")
    last = whole[:-1].rpartition(b"\n")[2].partition(b"\t")[0].decode("utf-8", "replace")
    if count and not re.search(rf"(^|\"){IMAGES}/{count - 1:08d}\.", last):
        raise FormatError(
            "the labels are not those that were written here",
            where=labels,
            received=f"{count} lines, the last of {last[:80]!r}",
            allowed=f"{IMAGES}/{count - 1:08d}",
            fix="name another folder",
        )
    if len(whole) < len(data):
        with disk_errors(labels):
            write_file(labels, whole)
    return count
