"""`predictor(...)`: the short way in. It returns an object that reads images, PDFs and lists of them.

A model that was used before starts from its artifact in OAR_HOME: no model code is imported, no network is asked. The
artifact's name holds a fingerprint of config, weights, sources and jax, so a change of any makes a new one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from framework.core.errors import ConfigError, InputError, nearest
from framework.export import Artifact, load_artifact
from framework.inference.cache import ROOT, kept_artifact
from framework.vision import image as vision_image
from framework.vision.pdf import PdfReader
from ocr.pipeline import Reader, ReadOptions
from ocr.results import Document, Page
from ocr.stages import DetectOptions, OrientOptions, RecognizeOptions

CONFIGS = ROOT / "configs" / "ocr"

Source = str | os.PathLike[str] | bytes | BinaryIO | np.ndarray | Any


class TextReader:
    """Reads text; made by `predictor`. Safe to call from several threads."""

    def __init__(self, reader: Reader, name: str, pdf_dpi: float = 200.0) -> None:
        self.reader, self.name, self.pdf_dpi = reader, name, pdf_dpi

    def __call__(self, source: Source | Sequence[Source]) -> Document:
        """A path, bytes, a file, an array, a PIL image, a PDF, or a list of them: the pages in order.

        Raises:
            InputError: a source cannot be read; the message names it.
        """
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        return Document(tuple(self.pages(source)), label)

    def pages(self, source: Source | Iterable[Source]) -> Iterator[Page]:
        """As a call, page by page: memory does not grow with their number."""
        return self.reader.pages(self._images(source))

    def _images(self, source: Any) -> Iterator[tuple[np.ndarray, str, int]]:
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        if isinstance(source, io.IOBase):  # they are iterators too, of lines
            label = str(getattr(source, "name", ""))
            source, _ = vision_image.read_bytes(source, "image or PDF")  # type: ignore[arg-type]
        if isinstance(source, (list, tuple, Iterator)):
            for item in source:
                yield from self._images(item)
            return
        if is_pdf(source):
            with PdfReader(source, dpi=self.pdf_dpi) as pages:
                for number, image in enumerate(pages, start=1):
                    yield image, label, number
            return
        yield vision_image.read(source), label, 1

    @property
    def compile_count(self) -> int:
        return self.reader.compile_count

    @property
    def bucket_count(self) -> int | None:
        return self.reader.bucket_count


def is_pdf(source: Any) -> bool:
    """Whether a path or bytes hold a PDF, by content."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source[:1024]).lstrip().startswith(b"%PDF-")
    if isinstance(source, (str, os.PathLike)) and Path(source).is_file():
        with open(source, "rb") as file:
            return file.read(1024).lstrip().startswith(b"%PDF-")
    return False


def predictor(
    model: str | os.PathLike[str] = "pp_ocrv6_small",
    *,
    device: str | None = None,
    precision: str = "auto",
    lang: str | None = None,
    max_side: int | None = None,
    thresh: float | None = None,
    box_thresh: float | None = None,
    unclip_ratio: float | None = None,
    batch_size: int | None = None,
    drop_score: float | None = None,
    orient: bool | None = None,
    overrides: Sequence[str] = (),
) -> TextReader:
    """An object that reads text: `read = predictor(); doc = read("scan.jpg"); print(doc.text)`.

    Args:
        model: The name of a config in configs/ocr, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16", or "auto": bfloat16 where hardware has it and the model's score table allows
        it.
        lang: A language code ("de", "ja", …): an error where the model's dictionary lacks its letters.
        max_side: Longest side, in pixels, at which the detector sees an image.
        thresh, box_thresh, unclip_ratio: See DBPostprocess.
        batch_size: Lines recognised at once.
        drop_score: Lines below this mean probability are dropped.
        orient: Whether lines on their heads are turned.
        overrides: Further settings, as `-o` of the tools: "pipeline.detector.options.max_aspect=6".

    Raises:
        InputError: no such model, precision or language.
        HubError: weights are neither here nor reachable.
    """
    changes = {
        "detector.options.size.limit_side": max_side,
        "detector.options.size.limit_type": None if max_side is None else "max",
        "detector.options.postprocess.thresh": thresh,
        "detector.options.postprocess.box_thresh": box_thresh,
        "detector.options.postprocess.unclip_ratio": unclip_ratio,
        "recognizer.options.batch": batch_size,
        "options.drop_score": drop_score,
        "options.orient": None if orient is None else str(orient).lower(),
    }
    settings = [f"pipeline.{key}={value}" for key, value in changes.items() if value is not None]
    if max_side is not None:
        settings.append(f"pipeline.detector.options.sides=[{_sides(max_side)}]")
    settings += overrides
    in_program = tuple(setting for setting in settings if not _at_run_time(setting))
    path = Path(model)
    if path.is_dir():
        if in_program:
            raise ConfigError(
                "an artifact's programs and weights are made, only its options can be changed",
                where=path,
                received=", ".join(in_program),
                allowed="pipeline.options.…, pipeline.<stage>.options.…, but not normalize, height and size_hw",
                fix="change it in the config and export again with tools/export_model.py",
            )
        artifact, name = load_artifact(path), path.name
    else:
        config = config_file(model)
        artifact, name = artifact_of(config, in_program), config.stem
    artifact = _changed(artifact, [setting for setting in settings if _at_run_time(setting)])
    reader = Reader(artifact, device, precision)
    if lang is not None:
        reader.characters.check_language(lang)
    return TextReader(reader, name)


def open_predictor(
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: tuple[str, ...],
    *,
    threshold: float | None = None,
    batch_size: int | None = None,
) -> Reader:
    """What tools/infer.py runs: the reader of a config file or of an artifact folder.

    The keywords are its options of the same names: `threshold` is `drop_score`, `batch_size` counts lines.
    """
    chosen = model_dir if model_dir is not None else str(config)
    read = predictor(
        chosen,
        device=device,
        precision=precision,
        drop_score=threshold,
        batch_size=batch_size,
        overrides=overrides,
    )
    return read.reader


def export_artifact(config: str, overrides: tuple[str, ...]) -> Artifact:
    """What tools/export_model.py writes."""
    from ocr.export import export_pipeline, load_pipeline

    pipeline, text = load_pipeline(config, overrides)
    return export_pipeline(pipeline, Path(config).stem, text)


def _sides(longest: int) -> str:
    """Five bucket sides up to `longest`, multiples of 32."""
    return ", ".join(str(s) for s in sorted({max(32, round(longest * k / 5 / 32) * 32) for k in range(1, 6)}))


def config_file(model: str | os.PathLike[str]) -> Path:
    """The config file of a name or a path. Raises: InputError with the known names."""
    path = Path(model)
    if path.suffix in (".yml", ".yaml"):
        return path
    found = CONFIGS / f"{model}.yml"
    if not found.is_file():
        names = sorted(p.stem for p in CONFIGS.glob("*.yml"))
        close = nearest(str(model), names)
        raise InputError(
            "there is no such OCR model",
            received=repr(str(model)),
            allowed=f"{', '.join(names)}; a config file (.yml); or an artifact folder",
            fix=f"did you mean {close!r}?" if close else None,
        )
    return found


def artifact_of(config: Path, overrides: tuple[str, ...] = ()) -> Artifact:
    """The artifact of a config: from OAR_HOME if it was made before, else exported now and kept there."""
    from framework.config import load, resolved

    def make() -> Artifact:
        from ocr.export import export_pipeline, load_pipeline

        pipeline, text = load_pipeline(config, overrides)
        return export_pipeline(pipeline, config.stem, text)

    tree = load(config, overrides)
    return kept_artifact(config.stem, resolved(tree), _local_files(tree.plain()), ("ocr",), make)


def _local_files(config: Any) -> list[Path]:
    """The user's own files of weights and dictionaries in a config, with those beside them of the same stem."""
    stages = config.get("pipeline") if isinstance(config, dict) else None
    named = [
        Path(stage[key]).expanduser()
        for stage in (stages.values() if isinstance(stages, dict) else ())
        for key in ("weights", "characters")
        if isinstance(stage, dict) and isinstance(stage.get(key), str) and stage[key]
    ]
    return sorted(
        {b for p in named if p.is_file() for b in p.parent.iterdir() if b.stem == p.stem and b.is_file()}
    )


def _at_run_time(setting: str) -> bool:
    """Whether a setting is an option that a finished artifact can be run with: all but what is part of the programs."""
    keys = setting.partition("=")[0].strip().split(".")
    return "options" in keys and not {"normalize", "height", "size_hw"} & set(keys)


def _changed(artifact: Artifact, settings: Sequence[str]) -> Artifact:
    """An artifact whose options are changed by settings such as pipeline.detector.options.size.limit_side=640."""
    from framework.config import bind, from_plain, override

    if not settings:
        return artifact
    stages = {name: stage.config.get("options", {}) for name, stage in artifact.stages.items()}
    tree = {"pipeline": {n: {"options": o} for n, o in stages.items()}}
    tree["pipeline"]["options"] = artifact.config.get("options", {})
    merged = from_plain(tree)
    for setting in settings:
        first, *below = setting.partition("=")[0].strip().split(".")
        if first != "pipeline" or below[0] not in tree["pipeline"] or "options" not in below[:2]:
            raise ConfigError(
                "the pipeline has no such option",
                where=f"-o {setting}",
                received=".".join((first, *below)),
                allowed="pipeline.options.…, " + ", ".join(f"pipeline.{name}.options.…" for name in stages),
            )
        merged = override(merged, setting)
    kinds = {"detector": DetectOptions, "recognizer": RecognizeOptions, "orienter": OrientOptions}
    nodes = merged.value["pipeline"].value
    bind(nodes["options"], ReadOptions)  # here, as the nodes still know which -o they are from
    for name in stages:
        bind(nodes[name].value["options"], kinds[name])
    data = merged.plain()["pipeline"]
    artifact.config["options"] = data["options"]
    for name, stage in artifact.stages.items():
        stage.config["options"] = data[name]["options"]
    return artifact
