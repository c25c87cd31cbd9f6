"""Run a predictor over files, folders, PDFs and videos, and write what it finds: the loop behind tools/infer.py.

A domain's module `<domain>.api` gives `open_predictor(...)`, an object whose `pages(items)` takes (image, source,
number) and yields results in order, and `export_artifact(...)`. A result has `to_dict()` (plain data for JSON),
`draw()` (a picture for a still image) and `overlay()` (a picture of the image's own size, for video).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np
from tqdm import tqdm

from framework.config import Domain, load
from framework.core.errors import ConfigError, InputError, OarError
from framework.export import CONFIG, load_artifact
from framework.vision import image as vision_image
from framework.vision.pdf import PdfReader
from framework.vision.video import VideoReader, VideoWriter

Item = tuple[np.ndarray, str, int]


class Result(Protocol):
    """What a predictor makes of one image: plain data for JSON and two pictures, [H, W, 3] uint8 RGB.

    `overlay` is of the image's own size, for video; `draw` may have any size.
    """

    def to_dict(self) -> dict[str, Any]: ...
    def draw(self) -> np.ndarray: ...
    def overlay(self) -> np.ndarray: ...


class Predictor(Protocol):
    """Reads a stream of (image [H, W, 3] uint8 RGB, source, page number) and gives one result each, in order."""

    def pages(self, items: Iterable[Item]) -> Iterator[Result]: ...


@dataclass
class Report:
    """What was written and what went wrong."""

    written: list[Path] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def summary(self) -> str:
        lines = [f"{len(self.written)} files in {self.written[0].parent}"] if self.written else []
        if self.failed:
            lines.append(f"{len(self.failed)} failed:")
            lines += [f"  {message}" for _, message in self.failed]
        return "\n".join(lines) or "nothing to do"

    @property
    def exit_code(self) -> int:
        return 1 if self.failed else 0


def write_json(path: Path, data: Any) -> None:
    """Atomically: the file is there whole or not at all."""
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    temporary = vision_image.temporary_beside(path)
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make the folder for the results if it is not there. Raises: InputError when that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "the folder for the results cannot be made",
            where=path,
            received=error.strerror,
            fix="choose another --output_dir",
        ) from error


def stems(files: Iterable[Path]) -> dict[Path, str]:
    """A name for the outputs of each file: its stem, or its whole name where files share a stem, numbered where even
    that is taken. Names that differ in case alone count as one, as on Windows and macOS."""
    files = list(dict.fromkeys(files))
    count = Counter(file.stem.lower() for file in files)
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for file in files:
        name = base = file.stem if count[file.stem.lower()] == 1 else file.name
        number = 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names[file] = name
    return names


def _spare_source(source: Path, output: Path) -> None:
    """Raises: InputError when writing `output` would replace the file that is read."""
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError(
            "the drawn result would replace its source",
            where=source,
            received=f"results in {output.parent}",
            allowed="another folder for the results, or no drawings",
            fix="choose another --output_dir, or --no_draw",
        )


def run_images(predictor: Predictor, files: Iterable[Path], output_dir: Path, draw: bool = True) -> Report:
    """Read every image; a file that cannot be read is reported and the others are read."""
    report = Report()
    names = stems(files)
    for file, stem in names.items():
        if draw:
            _spare_source(file, output_dir / f"{stem}.png")
    waiting: list[str] = []

    def items() -> Iterator[Item]:
        for file, stem in names.items():
            try:
                picture = vision_image.read(file)
            except OarError as error:
                report.failed.append((str(file), str(error)))
                continue
            waiting.append(stem)
            yield picture, str(file), 1

    _collect(predictor, items(), waiting, output_dir, draw, report, len(names))
    return report


def run_pdf(
    predictor: Predictor, file: Path, output_dir: Path, draw: bool = True, dpi: float = 200.0
) -> Report:
    """Read every page of a PDF; outputs are called <stem>_page1, <stem>_page2, …"""
    report = Report()
    waiting: list[str] = []
    try:
        with PdfReader(file, dpi=dpi) as pages:

            def items() -> Iterator[Item]:
                for number, picture in enumerate(pages, start=1):
                    waiting.append(f"{file.stem}_page{number}")
                    yield picture, str(file), number

            _collect(predictor, items(), waiting, output_dir, draw, report, len(pages))
    except OarError as error:
        report.failed.append((str(file), str(error)))
    return report


def _collect(
    predictor: Predictor,
    items: Iterator[Item],
    waiting: list[str],
    output_dir: Path,
    draw: bool,
    report: Report,
    total: int,
) -> None:
    make_folder(output_dir)
    with tqdm(total=total, unit="page", disable=total < 2 or not sys.stderr.isatty()) as bar:
        for result in predictor.pages(items):
            stem = waiting.pop(0)
            write_json(output_dir / f"{stem}.json", result.to_dict())
            report.written.append(output_dir / f"{stem}.json")
            if draw:
                vision_image.write(output_dir / f"{stem}.png", result.draw())
                report.written.append(output_dir / f"{stem}.png")
            bar.update(1)


def run_video(predictor: Predictor, source: Path | int, output_dir: Path, draw: bool = True) -> Report:
    """Every frame of a video (or camera): <stem>.jsonl with a line a frame, and <stem>.mp4 at the same frame rate."""
    report = Report()
    make_folder(output_dir)
    stem = source.stem if isinstance(source, Path) else f"camera{source}"
    lines = output_dir / f"{stem}.jsonl"
    if draw and isinstance(source, Path):
        _spare_source(source, output_dir / f"{stem}.mp4")
    temporary = vision_image.temporary_beside(lines)
    writer: VideoWriter | None = None
    try:
        with VideoReader(source) as video, temporary.open("w", encoding="utf-8") as out:
            frames = ((frame, str(source), number) for number, frame in enumerate(video, start=1))
            total = video.frame_count or None
            with tqdm(total=total, unit="frame", disable=not sys.stderr.isatty()) as bar:
                for number, result in enumerate(predictor.pages(frames)):
                    found = {"frame": number, "time": round(number / video.fps, 3), **result.to_dict()}
                    found.pop("page", None)
                    out.write(json.dumps(found, ensure_ascii=False) + "\n")
                    if draw:
                        picture = result.overlay()
                        if writer is None:
                            writer = VideoWriter(output_dir / f"{stem}.mp4", video.fps, picture.shape[:2])
                        writer.write(picture)
                    bar.update(1)
        if writer is not None:
            writer.close()
            report.written.append(output_dir / f"{stem}.mp4")
        os.replace(temporary, lines)
        report.written.append(lines)
    except OarError as error:
        report.failed.append((str(source), str(error)))
    finally:
        if writer is not None:
            writer.abort()
        temporary.unlink(missing_ok=True)
    return report


def _domain(name: Any, where: object) -> Any:
    """The module `<domain>.api`."""
    ready = [
        domain
        for domain in get_args(Domain)
        if importlib.util.find_spec(domain) and importlib.util.find_spec(f"{domain}.api")
    ]
    if name not in ready:
        raise ConfigError(
            "this domain cannot run models",
            where=where,
            received=f"domain: {name}",
            allowed=", ".join(ready),
            fix="name one of these under `domain`; what jit.save wrote runs with framework.jit.load",
        )
    return importlib.import_module(f"{name}.api")


def open_predictor(
    config: str | None, model_dir: str | None, device: str | None, precision: str, overrides: Sequence[str]
) -> Predictor:
    """The predictor of a config file or of an artifact folder."""
    if model_dir is not None:
        domain = load_artifact(model_dir, stages=False).config.get("domain")
        where: object = Path(model_dir) / CONFIG
    else:
        tree = load(str(config), tuple(overrides)).value
        domain, where = tree["domain"].value if "domain" in tree else None, config
    return _domain(domain, where).open_predictor(config, model_dir, device, precision, tuple(overrides))


def export(config: str, output_dir: Path, overrides: Sequence[str]) -> Path:
    """Write the artifact of a config to output_dir/<name of the config>; returns that folder."""
    tree = load(config, tuple(overrides)).value
    module = _domain(tree["domain"].value if "domain" in tree else None, config)
    return module.export_artifact(config, tuple(overrides)).save(output_dir / Path(config).stem)


def check_sources(
    image_file: str | None, image_dir: str | None, pdf_file: str | None, video_file: str | None
) -> None:
    """Before a model is loaded: is there something to read? Raises: InputError."""
    given = next((s for s in (image_file, image_dir, pdf_file, video_file) if s is not None), None)
    path = Path(str(given))
    wants_folder = image_dir is not None
    if not (path.is_dir() if wants_folder else path.is_file()):
        raise InputError(
            f"there is no such {'folder' if wants_folder else 'file'}",
            where=given,
            received="a folder" if path.is_dir() else "a file" if path.is_file() else "nothing at this path",
            fix="--image_dir takes folders, the other options take files"
            if path.exists()
            else "check the path",
        )


def run(
    predictor: Predictor,
    output_dir: Path,
    *,
    image_file: str | None = None,
    image_dir: str | None = None,
    pdf_file: str | None = None,
    video_file: str | None = None,
    draw: bool = True,
) -> Report:
    """Read the one source that is given and write the results to `output_dir`."""
    if video_file is not None:
        return run_video(predictor, Path(video_file), output_dir, draw)
    if pdf_file is not None:
        return run_pdf(predictor, Path(pdf_file), output_dir, draw)
    files = [Path(image_file)] if image_file is not None else vision_image.list_images(str(image_dir))
    if not files:
        raise InputError(
            "the folder holds no picture",
            where=image_dir,
            allowed="files such as .jpg, .png, .tif, .bmp, .webp",
        )
    return run_images(predictor, files, output_dir, draw)
