"""Commands about data beside the check: split them, draw what a loader gives, and measure them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework.config import bind
from framework.config.bind import packages_of
from framework.core.disk import disk_errors, write_file
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.fields import read_list
from framework.core.types import JSON
from framework.engine.experiment import Data, LoaderConfig
from framework.io.dataset import split_windows
from framework.io.loader import DataLoader
from framework.text.lines import find_delimiter, read_lines, records
from framework.text.sample import TextSample
from framework.vision import draw
from framework.vision import image as vision_image
from framework.vision.dataset_files import abbreviate, read_annotations
from framework.vision.sample import Sample
from framework.workflow.domain.config_file import ConfigFile, open_config

_SPLITS = ("train", "val")
_IMAGES = ("images", "image", "JPEGImages", "img")
_LABELS = ("masks", "mask", "labels", "label", "annotations", "Annotations", "SegmentationClass")
_TABLES = (".tsv", ".csv", ".txt", ".jsonl")


class SplitReport(NamedTuple):
    """What `split_data` wrote."""

    paths: tuple[Path, Path]
    """Of the part to train on, and of the one to evaluate."""
    counts: tuple[int, int]

    def __str__(self) -> str:
        return "\n".join(f"{path}: {count} samples" for path, count in zip(self.paths, self.counts))


def split_data(
    source: str | Path, output: str | Path, share: float = 0.2, seed: int = 0, header: bool = False
) -> SplitReport:
    """Divide data that are in one piece into a part to train on and one to evaluate, `share` of all.

    * Of a folder with images in one folder (`images`, `image`, `JPEGImages`) and what belongs to them in another
      (`masks`, `labels`, `annotations`, ...), pairs of the same name up to the suffix are copied to
      `<output>/train/<images>`, `<output>/train/<masks>` and the same of `val`.
    * A folder of class folders is copied to `<output>/train/<class>` and `<output>/val/<class>`, each class divided
      alike.
    * The images of a COCO file go to `<output>/train.json` and `<output>/val.json`, with their annotations and all
      categories; the images stay where they are.
    * The lines of a .tsv, .csv, .txt or .jsonl go to files of that ending; with `header` the first one stands in both.
      A record of a .csv stays whole where a field in quotes has line breaks.

    Files or lines of the same content go into the same part. One seed gives one division.

    Raises:
        InputError: there is no such data, the output is there already, or a part would be empty.
        DiskError: the disk takes no more; nothing of the output stays.
        ConfigError: `share` is not between 0 and 1.
    """
    source, output = Path(source), Path(output)
    if not 0 < share < 1:
        raise ConfigError("the share to evaluate is out of range", received=share, allowed="0 < share < 1")
    if source.is_dir():
        return _split_folder(source, output, share, seed)
    if source.suffix == ".json":
        return _split_coco(source, output, share, seed)
    if source.suffix in _TABLES:
        return _split_lines(source, output, share, seed, header)
    raise InputError(
        "this cannot be split",
        where=source,
        allowed=f"a folder of class folders, a COCO file (.json), or a file of lines ({', '.join(_TABLES)})",
        fix=f"the current folder is {Path.cwd()}",
    )


def draw_samples(
    config: str | Path | ConfigFile,
    output: str | Path,
    overrides: Sequence[str] = (),
    part: str = "train",
    count: int = 8,
    epoch: int = 0,
) -> list[Path]:
    """Write the first samples of an epoch as the model gets to see them, after all transforms, with their labels.

    An image is drawn with its mask, boxes, polygons, keypoints or class into `<output>/<number>.png`; texts, also
    those of images of one line, go into `<output>/samples.txt`, a line each.

    Raises:
        ConfigError: the configuration has no such part. OarError: a sample cannot be made.
    """
    loader, names = _open_loader(config, overrides, part)
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    written, lines = [], []
    for number, sample in enumerate(_first_samples(loader, count, epoch)):
        if isinstance(sample, TextSample):
            lines.append(_describe_text(sample, names))
        elif isinstance(sample, Sample):
            written.append(output / f"{number}.png")
            vision_image.write(written[-1], draw_sample(sample, names))
            if isinstance(sample.text, str):
                lines.append(f"{number}.png\t{sample.text}")
    if lines:
        written.append(output / "samples.txt")
        written[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return written


def draw_sample(sample: Sample, names: Sequence[str]) -> np.ndarray:
    """[H, W, 3] uint8: the image with what is known about it."""
    canvas = _as_rgb(sample.image)
    labels = np.zeros(0, int) if sample.labels is None else sample.labels
    if sample.mask is not None and sample.mask.ndim == 2 and sample.mask.dtype != bool:
        canvas = draw.classes(canvas, sample.mask)
    if sample.boxes is not None:
        texts = [_name_class(int(label), names) for label in labels]
        has_texts = len(texts) == len(sample.boxes)
        canvas = draw.boxes(
            canvas, sample.boxes, labels=texts if has_texts else None, ids=labels if has_texts else None
        )
    if sample.polygons is not None:
        texts_drawn = [text if readable else "###" for text, readable in _texts_of(sample)]
        canvas = draw.polygons(canvas, sample.polygons, labels=texts_drawn or None)
    if sample.keypoints is not None:
        canvas = draw.keypoints(canvas, sample.keypoints)
    if labels.ndim == 0:
        canvas = draw.text(canvas, _name_class(int(labels), names), (2, 2))
    return canvas


def _texts_of(sample: Sample) -> list[tuple[str, bool]]:
    """The text of each object and whether it counts; nothing where they have none."""
    if not isinstance(sample.text, tuple):
        return []
    valid = [True] * len(sample.text) if sample.valid is None else sample.valid.tolist()
    return list(zip(sample.text, valid, strict=True))


def _name_class(label: int, names: Sequence[str]) -> str:
    return names[label] if 0 <= label < len(names) else str(label)


def measure_data(config: str | Path | ConfigFile, overrides: Sequence[str] = (), part: str = "train") -> str:
    """A page of statistics of a part as it is stored, before transforms: what a recipe is chosen by.

    Of images: number, sizes, mean and deviation of each channel; of objects: how many an image, and their size as a
    share of the image's side; of texts: lengths in characters.

    Raises:
        ConfigError: the configuration has no such part. OarError: a sample cannot be read.
    """
    dataset = _find_split(config, overrides, part)[0].dataset
    sizes, pixels = [], 0
    sums, squares = np.zeros(1), np.zeros(1)
    objects, shares, lengths = [], [], []
    count = len(dataset)  # pyright: ignore[reportArgumentType]
    for index in range(count):
        sample = dataset[index]  # pyright: ignore[reportIndexIssue]
        if isinstance(sample, TextSample):
            lengths.append(len(sample.text))
        elif isinstance(sample, Sample):
            values = sample.image.reshape(-1, sample.image.shape[2]).astype(np.float64)
            sizes.append(sample.image.shape[:2])
            sums, squares, pixels = sums + values.sum(0), squares + (values**2).sum(0), pixels + len(values)
            if sample.text is not None:
                texts = (sample.text,) if isinstance(sample.text, str) else sample.text
                lengths += map(len, texts)
            if sample.boxes is not None:
                sides = sample.boxes[:, 2:] - sample.boxes[:, :2]
                objects.append(len(sides))
                height, width = sample.image.shape[:2]
                shares.append(np.sqrt(sides.prod(axis=1).clip(0) / (height * width)))
    lines = [f"{count} samples"]
    if sizes:
        mean = sums / pixels
        deviation = np.sqrt(np.maximum(squares / pixels - mean**2, 0))
        lines += [
            f"height {_spread([size[0] for size in sizes])}",
            f"width {_spread([size[1] for size in sizes])}",
            f"mean of each channel {_numbers(mean)}, deviation {_numbers(deviation)}",
        ]
    if objects:
        lines += [f"objects of an image {_spread(objects)}"]
        lines += [f"side of an object, as a share of its image's {_spread(np.concatenate(shares))}"]
    if lengths:
        lines += [f"characters of a text {_spread(lengths)}"]
    return "\n".join(lines)


def _split_folder(source: Path, output: Path, share: float, seed: int) -> SplitReport:
    classes = sorted(path for path in source.iterdir() if path.is_dir() and path.name[0] != ".")
    images, labels = ([path for path in classes if path.name in names] for names in (_IMAGES, _LABELS))
    if len(images) == len(labels) == 1:
        return _split_pairs(source, images[0], labels[0], output, share, seed)
    if not classes:
        raise InputError(
            "there are no class folders", where=source, allowed="<class>/<image>, one folder a class"
        )
    targets = tuple(output / part for part in _SPLITS)
    check_new(targets)
    counts = [0, 0]
    with write_whole(targets):
        for folder in classes:
            paths = _list_files(folder)
            held_out = _choose([_hash_file(path) for path in paths], share, seed, folder)
            for path, number in zip(paths, held_out):
                _copy(path, targets[number] / path.relative_to(source))
                counts[number] += 1
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _split_pairs(
    source: Path, images: Path, labels: Path, output: Path, share: float, seed: int
) -> SplitReport:
    targets = tuple(output / part for part in _SPLITS)
    check_new(targets)
    of_name = {path.relative_to(labels).with_suffix("").as_posix(): path for path in _list_files(labels)}
    paths = _list_files(images)
    names = [path.relative_to(images).with_suffix("").as_posix() for path in paths]
    if missing := [str(path) for path, name in zip(paths, names) if name not in of_name]:
        raise InputError(
            f"{len(missing)} of {len(paths)} images have no file of their name in {labels.name}",
            where=labels,
            received=abbreviate(missing),
            fix="add them, or take the images out",
        )
    counts = [0, 0]
    held_out = _choose([_hash_file(path) for path in paths], share, seed, images)
    with write_whole(targets):
        for path, name, number in zip(paths, names, held_out):
            for one in (path, of_name[name]):
                _copy(one, targets[number] / one.relative_to(source))
            counts[number] += 1
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")


def _hash_file(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def _objects(entries: list[JSON], source: Path) -> list[dict[str, JSON]]:
    """Raises: FormatError, where one of them is something else."""
    objects = [one for one in entries if isinstance(one, dict)]
    if len(objects) != len(entries):
        wrong = next(one for one in entries if not isinstance(one, dict))
        raise FormatError("an entry is no JSON object", where=source, received=repr(wrong)[:80])
    return objects


def _split_coco(source: Path, output: Path, share: float, seed: int) -> SplitReport:
    data = read_annotations(source)
    if not isinstance(data, dict):
        raise FormatError("the file is not in COCO's format", where=source, allowed='{"images": [...], ...}')
    targets = tuple(output / f"{part}.json" for part in _SPLITS)
    check_new(targets)
    images = _objects(read_list(data, "images", source), source)
    annotations = _objects(read_list(data, "annotations", source, []), source)
    held_out = _choose([str(one.get("file_name")).encode() for one in images], share, seed, source)
    counts, texts = [], []
    for number in range(len(targets)):
        selected = [one for one, chosen in zip(images, held_out) if chosen == number]
        ids = [one.get("id") for one in selected]
        ids_seen = {repr(key) for key in ids}
        rows = [one for one in annotations if repr(one.get("image_id")) in ids_seen]
        texts.append(json.dumps({**data, "images": selected, "annotations": rows}, ensure_ascii=False))
        counts.append(len(selected))
    _write_texts(targets, texts)
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _split_lines(source: Path, output: Path, share: float, seed: int, header: bool) -> SplitReport:
    lines = read_lines(source)
    if source.suffix.lower() == ".csv":
        lines = [record for _, record in records(lines, find_delimiter(lines[0]))]
    head, lines = (lines[:1], lines[1:]) if header else ([], lines)
    lines = [line for line in lines if line.strip()]
    targets = tuple(output / f"{part}{source.suffix}" for part in _SPLITS)
    check_new(targets)
    held_out = _choose([line.encode("utf-8", "surrogatepass") for line in lines], share, seed, source)
    counts, texts = [], []
    for number in range(len(targets)):
        selected = [line for line, chosen in zip(lines, held_out) if chosen == number]
        texts.append("\n".join([*head, *selected]) + "\n")
        counts.append(len(selected))
    _write_texts(targets, texts)
    return SplitReport((targets[0], targets[1]), (counts[0], counts[1]))


def _choose(contents: Sequence[bytes], share: float, seed: int, where: Path) -> list[int]:
    """0 or 1 for each sample: 1 of about `share` of them; those of one content have the same."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    for index, content in enumerate(contents):
        groups[content].append(index)
    count, numbers = max(1, round(share * len(contents))), [0] * len(contents)
    order = np.random.default_rng(seed).permutation(len(groups))
    members = list(groups.values())
    if len(members) < 2:
        raise InputError(
            "a part would be empty",
            where=where,
            received=f"{len(members)} different samples",
            allowed="2 or more",
        )
    for number in order[: len(order) - 1]:  # one group stays to train on
        if sum(numbers) >= count:
            break
        for index in members[number]:
            numbers[index] = 1
    return numbers


@contextmanager
def write_whole(targets: Sequence[Path]) -> Iterator[None]:
    """What the block writes to the targets, which are new, stays whole or not at all. Raises: DiskError."""
    try:
        with disk_errors(targets[0].parent):
            yield
    except BaseException:
        for target in targets:
            shutil.rmtree(target, ignore_errors=True)
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            targets[0].parent.rmdir()  # where nothing else is in it
        raise


def _write_texts(targets: Sequence[Path], texts: Sequence[str]) -> None:
    with write_whole(targets):
        for target, text in zip(targets, texts):
            write_file(target, text.encode("utf-8"))


def check_new(targets: Iterable[Path]) -> None:
    """Raises: InputError, where one of the targets is there."""
    if there := [str(path) for path in targets if path.exists()]:
        raise InputError(
            "the output is there already", where=there[0], fix="name another folder, or move it away"
        )


def _find_split(
    config: str | Path | ConfigFile, overrides: Sequence[str], part: str
) -> tuple[LoaderConfig, int]:
    """The settings of a part's loader, and the seed of training."""
    config = open_config(config, overrides)
    tree = config.tree
    data = bind(tree.value["data"], Data, packages_of(tree)) if "data" in tree.value else Data()
    loader = {"train": data.train, "eval": data.eval}.get(part)
    if loader is None:
        raise ConfigError(
            "the configuration has no such data", where=config.path, received=part, allowed="train, eval"
        )
    seed = tree.value["train"].value.get("seed") if "train" in tree.value else None
    return loader, 0 if seed is None else seed.value


def _open_loader(
    config: str | Path | ConfigFile, overrides: Sequence[str], part: str
) -> tuple[DataLoader, tuple[str, ...]]:
    """Samples after the transforms, one a batch, in the order of training."""
    split, seed = _find_split(config, overrides, part)
    dataset, transforms = split_windows(split.dataset, split.transforms)
    loader = DataLoader(
        dataset, transforms=transforms, collate_fn=list, shuffle=part == "train", num_workers=0, seed=seed
    )
    return loader, tuple(getattr(split.dataset, "class_names", ()))


def _first_samples(loader: DataLoader, count: int, epoch: int) -> Iterable[Any]:
    for _, batch in zip(range(count), loader.batches(epoch)):
        yield batch.data[0]


def _describe_text(sample: TextSample, names: Sequence[str]) -> str:
    fields = [
        str(sample.id),
        sample.text,
        *(text for text in (sample.pair, sample.target) if text is not None),
    ]
    if sample.label is not None:
        fields.append(names[sample.label])
    if sample.tags is not None and sample.words is not None:
        fields.append(" ".join(f"{word}/{names[tag]}" for word, tag in zip(sample.words, sample.tags)))
    if sample.ids is not None:
        fields.append(f"{len(sample.ids)} tokens")
    return "\t".join(field.replace("\t", " ").replace("\n", " ") for field in fields)


def _as_rgb(pixels: np.ndarray) -> np.ndarray:
    """[H, W, 3] uint8 of an image of whatever type and number of channels."""
    if pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = ((pixels - low) * (255 / max(high - low, 1e-9))).astype(np.uint8)
    return np.ascontiguousarray(pixels if pixels.shape[2] == 3 else np.repeat(pixels[..., :1], 3, axis=2))


def _spread(values: Sequence[float] | np.ndarray) -> str:
    if len(values) == 0:
        return "none"
    low, middle, high = np.quantile(values, (0, 0.5, 1)).tolist()
    return f"{low:.4g} to {high:.4g}, half up to {middle:.4g}"


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{value:.1f}" for value in values)
