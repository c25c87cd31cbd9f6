"""Commands about data beside the check: split them, draw what a loader gives, and measure them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framework.config import bind
from framework.config.bind import packages_of
from framework.core.errors import ConfigError
from framework.engine.experiment import Data, LoaderConfig
from framework.io.dataset import split_windows
from framework.io.loader import DataLoader
from framework.text.sample import TextSample
from framework.vision import draw, masks
from framework.vision import image as vision_image
from framework.vision.legend import add_legend
from framework.vision.sample import Sample
from framework.workflow.data.outputs import check_new as check_new
from framework.workflow.data.outputs import write_whole as write_whole
from framework.workflow.data.split import SplitReport as SplitReport
from framework.workflow.data.split import split_data as split_data
from framework.workflow.domain.config_file import ConfigFile, open_config

_UNKNOWN = -1  # stands in drawings for pixels without a class


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
    loader, names, palette = _open_loader(config, overrides, part)
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    written, lines = [], []
    for number, sample in enumerate(_first_samples(loader, count, epoch)):
        if isinstance(sample, TextSample):
            lines.append(_describe_text(sample, names))
        elif isinstance(sample, Sample):
            written.append(output / f"{number}.png")
            vision_image.write(written[-1], draw_sample(sample, names, palette))
            if isinstance(sample.text, str):
                lines.append(f"{number}.png\t{sample.text}")
    if lines:
        written.append(output / "samples.txt")
        written[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return written


def draw_sample(sample: Sample, names: Sequence[str], palette: np.ndarray | None = None) -> np.ndarray:
    """[H, W, 3] uint8: the image with what is known about it; below one with classes of pixels a legend.

    Args:
        palette: [K, 3] uint8 RGB, the colours of the classes of pixels where the data set says them.
    """
    legend: list[tuple[str, list[int]]] = []
    canvas = _as_rgb(sample.image)
    labels = np.zeros(0, int) if sample.labels is None else sample.labels
    if sample.mask is not None and sample.mask.ndim == 2 and sample.mask.dtype != bool:
        classes = [index for index in np.unique(sample.mask).tolist() if index < max(1, len(names))]
        colors = masks.palette(max(classes, default=0) + 1) if palette is None else palette
        class_map = sample.mask.astype(np.int32)
        class_map[class_map >= len(colors)] = _UNKNOWN
        canvas = draw.classes(canvas, class_map, colors=colors, ignore=_UNKNOWN)
        legend = [
            (_name_class(index, names), colors[index].tolist()) for index in classes if index < len(colors)
        ]
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
    return add_legend(canvas, legend)


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
) -> tuple[DataLoader, tuple[str, ...], np.ndarray | None]:
    """The loader, of samples after the transforms, one a batch, in the order of training; names and colours of the
    classes."""
    split, seed = _find_split(config, overrides, part)
    dataset, transforms = split_windows(split.dataset, split.transforms)
    loader = DataLoader(
        dataset, transforms=transforms, collate_fn=list, shuffle=part == "train", num_workers=0, seed=seed
    )
    palette = getattr(split.dataset, "palette", None)
    return loader, tuple(getattr(split.dataset, "class_names", ())), palette


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
