"""Run a predictor over files, folders, PDFs and videos, and write what it finds: the loop behind tools/infer.py.

A domain's module `<domain>.api` gives `open_predictor(config, model_dir, device, precision, overrides, *, ...)`, whose
keywords are the options of tools/infer.py that the domain takes, and `export_artifact(config, overrides)`. One that
reads folders of other frameworks gives `is_foreign(folder)`, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np
from tqdm import tqdm

from framework.config import Domain, load
from framework.core.errors import ConfigError, InputError, OarError
from framework.export import CONFIG, load_artifact
from framework.inference.outputs import Report, make_folder, spare_sources, stems, text_file, write_json
from framework.text.lines import read_lines
from framework.vision import image as vision_image
from framework.vision.pdf import PdfReader
from framework.vision.video import VideoReader, VideoWriter

Item = tuple[np.ndarray, str, int]
SOURCES = ("image_file", "image_dir", "pdf_file", "video_file", "camera_id", "text", "text_file", "pair")
_DRAWERS, _DRAWN_AHEAD = 2, 8


class Result(Protocol):
    """What a predictor makes of one image: plain data for JSON and two images, [H, W, 3] uint8 RGB.

    `overlay` is of the image's own size, for video; `draw` may have any size.
    """

    def to_dict(self) -> dict[str, Any]: ...
    def draw(self) -> np.ndarray: ...
    def overlay(self) -> np.ndarray: ...


class Predictor(Protocol):
    """Reads a stream of (image [H, W, 3] uint8 RGB, source, page number) and gives one result each, in order.

    It may also have `frames(items, frame_rate)`, which is asked instead of `pages` for a video, and
    `saving(stem, files)`, which gives the ResultWriter for these images, or for a video where `files` is None. Where
    it has
    `further`, the ending of one more image for each that is drawn, results have `write_further(path)`. Where it has
    `read(file) -> (image, label)`, that reads the images.
    """

    def pages(self, items: Iterable[Item]) -> Iterator[Any]: ...


class ResultWriter(Protocol):
    """One file for all results, which `--save_results` asks for: `head`, the `text` of each result, `tail`.

    `number` counts the images or frames that were read, from 0.
    """

    name: str
    head: str
    tail: str

    def text(self, result: Any, number: int) -> str: ...


def _saving(predictor: Predictor, stem: str, files: Sequence[str] | None = None) -> ResultWriter:
    if not hasattr(predictor, "saving"):
        raise ConfigError(
            "this domain has no single file for all results",
            received="--save_results",
            fix="leave it out: there is a JSON file for each image, and a line for each frame of a video",
        )
    return predictor.saving(stem, files)  # type: ignore[attr-defined]


def _endings(predictor: Predictor) -> tuple[str, ...]:
    """Of the names of the images that are written for each image, before the suffix; the drawing has none."""
    further = getattr(predictor, "further", None)
    return ("",) if further is None else ("", further)


def run_images(
    predictor: Predictor, files: Iterable[Path], output_dir: Path, draw: bool = True, save: bool = False
) -> Report:
    """Read every image; a file that cannot be read is reported and the others are read.

    `save` asks for the one file of all results besides.
    """
    report = Report()
    files = list(dict.fromkeys(files))
    saving = _saving(predictor, "", [str(file) for file in files]) if save else None
    endings = _endings(predictor)
    names = stems(files, [] if saving is None else [Path(saving.name).stem], endings)
    if draw:
        spare_sources(files, (output_dir / f"{name}{end}.png" for name in names.values() for end in endings))
    waiting: deque[str] = deque()
    read = getattr(predictor, "read", None)

    def items() -> Iterator[Item]:
        for file, stem in names.items():
            try:
                image = vision_image.read(file) if read is None else read(file)[0]
            except OarError as error:
                report.failed.append((str(file), str(error)))
                continue
            waiting.append(stem)
            yield image, str(file), 1

    _collect(predictor, items(), waiting, output_dir, draw, report, len(names), saving)
    return report


def run_pdf(
    predictor: Predictor, file: Path, output_dir: Path, draw: bool = True, dpi: float = 200.0
) -> Report:
    """Read every page of a PDF; outputs are called <stem>_page1, <stem>_page2, …"""
    report = Report()
    waiting: deque[str] = deque()
    try:
        with PdfReader(file, dpi=dpi) as pages:

            def items() -> Iterator[Item]:
                for number, image in enumerate(pages, start=1):
                    waiting.append(f"{file.stem}_page{number}")
                    yield image, str(file), number

            _collect(predictor, items(), waiting, output_dir, draw, report, len(pages))
    except OarError as error:
        report.failed.append((str(file), str(error)))
    return report


def _collect(
    predictor: Predictor,
    items: Iterator[Item],
    waiting: deque[str],
    output_dir: Path,
    draw: bool,
    report: Report,
    total: int,
    saving: ResultWriter | None = None,
) -> None:
    make_folder(output_dir)
    with ExitStack() as stack:
        bar = stack.enter_context(
            tqdm(total=total, unit="page", disable=total < 2 or not sys.stderr.isatty())
        )
        saved = stack.enter_context(_saved(saving, output_dir))
        for number, result in enumerate(predictor.pages(items)):
            stem = waiting.popleft()
            write_json(output_dir / f"{stem}.json", result.to_dict())
            report.written.append(output_dir / f"{stem}.json")
            saved(result, number)
            if draw:
                _, *further = images = [output_dir / f"{stem}{ending}.png" for ending in _endings(predictor)]
                vision_image.write(images[0], result.draw())
                for path in further:
                    result.write_further(path)
                report.written += images
            bar.update(1)
    if saving is not None:
        report.written.append(output_dir / saving.name)


def _pairs(lines: Sequence[str | tuple[str, str]], where: str) -> list[tuple[str, str]]:
    """The first two columns of each line that is not blank, with a tab between them. Raises: InputError."""
    found = []
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str) and not line.strip():
            continue
        columns = line if isinstance(line, tuple) else line.split("\t")
        if len(columns) < 2:
            raise InputError(
                "the model takes two texts",
                where=f"{where}, line {number}",
                received=repr(line[:60]),
                allowed="two texts with a tab between them",
                fix="with --text the second one is given as --pair",
            )
        found.append((columns[0], columns[1]))
    return found


def run_texts(predictor: Any, texts: Sequence[str | tuple[str, str]], output_dir: Path) -> Report:
    """What `predictor.attempts` finds in each text, a line each, in results.jsonl.

    A text that cannot be read is reported, its line says why, and the others are read.
    """
    make_folder(output_dir)
    path = output_dir / "results.jsonl"
    report = Report([path])
    with text_file(path) as out:
        found = tqdm(
            predictor.attempts(texts),
            total=len(texts),
            unit="text",
            disable=len(texts) < 2 or not sys.stderr.isatty(),
        )
        for number, (text, result) in enumerate(zip(texts, found), start=1):
            if isinstance(result, OarError):
                report.failed.append((f"text {number}", f"text {number}: {result}"))
                line = {"text": text if isinstance(text, str) else text[0], "error": str(result)}
            else:
                line = result.to_dict()
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    return report


@contextmanager
def _saved(saving: ResultWriter | None, output_dir: Path) -> Iterator[Any]:
    """A function of (result, number) that adds to the file of all results; it does nothing without `saving`."""
    if saving is None:
        yield lambda result, number: None
        return
    with text_file(output_dir / saving.name) as out:
        out.write(saving.head)
        yield lambda result, number: out.write(saving.text(result, number))
        out.write(saving.tail)


def run_video(
    predictor: Predictor, source: Path | int, output_dir: Path, draw: bool = True, save: bool = False
) -> Report:
    """Every frame of a video: <stem>.jsonl with a line a frame, and <stem>.mp4 at the same frame rate.

    Decoding, the model, drawing and encoding run side by side, each a few frames ahead of the next. A video that ends
    before its time is written up to there, and the report says so. A number is a camera, read until Ctrl+C.
    """
    report = Report()
    make_folder(output_dir)
    stem = source.stem if isinstance(source, Path) else f"camera{source}"
    lines, clip = output_dir / f"{stem}.jsonl", output_dir / f"{stem}.mp4"
    saving = _saving(predictor, stem) if save else None
    if draw and isinstance(source, Path):
        spare_sources([source], [clip])
    try:
        with ExitStack() as stack:
            video = stack.enter_context(VideoReader(source))
            out = stack.enter_context(text_file(lines))
            saved = stack.enter_context(_saved(saving, output_dir))
            total = video.frame_count
            bar = stack.enter_context(tqdm(total=total, unit="frame", disable=not sys.stderr.isatty()))
            stopped = stack.enter_context(_interrupts(isinstance(source, int)))
            writer: VideoWriter | None = None
            for number, (result, image) in enumerate(
                _drawn(_results(predictor, video, source, stopped), draw)
            ):
                found = {"frame": number, "time": round(number / video.fps, 3), **result.to_dict()}
                found.pop("page", None)
                out.write(json.dumps(found, ensure_ascii=False) + "\n")
                saved(result, number)
                if image is not None:
                    if writer is None:
                        writer = stack.enter_context(VideoWriter(clip, video.fps, image.shape[:2]))
                    writer.write(image)
                bar.update(1)
        report.written += [path for path, there in ((clip, writer is not None), (lines, True)) if there]
        if saving is not None:
            report.written.append(output_dir / saving.name)
        if total is not None and video.frames_read < total - 1:  # the number in the file is an estimate
            report.notes.append(f"{source}: the video ends after {video.frames_read} of {total} frames")
    except OarError as error:
        report.failed.append((str(source), str(error)))
    return report


def _results(
    predictor: Predictor, video: VideoReader, source: Path | int, stopped: threading.Event
) -> Iterator[Any]:
    def items() -> Iterator[Item]:
        for number, frame in enumerate(video, start=1):
            yield frame, str(source), number
            if stopped.is_set():
                return

    frames = getattr(predictor, "frames", None)
    return predictor.pages(items()) if frames is None else frames(items(), video.fps)


def _drawn(results: Iterator[Any], draw: bool) -> Iterator[tuple[Any, np.ndarray | None]]:
    """Each result, in order, with its overlay, which is drawn on another thread."""
    if not draw:
        yield from ((result, None) for result in results)
        return
    waiting: deque[tuple[Any, Future[np.ndarray]]] = deque()
    with ThreadPoolExecutor(_DRAWERS, "oar-draw") as pool:
        for result in results:
            waiting.append((result, pool.submit(result.overlay)))
            if len(waiting) > _DRAWN_AHEAD:
                ready, image = waiting.popleft()
                yield ready, image.result()
        for ready, image in waiting:
            yield ready, image.result()


@contextmanager
def _interrupts(camera: bool) -> Iterator[threading.Event]:
    """An event that Ctrl+C sets instead of ending the program: with a camera it ends the recording, which is kept."""
    stopped = threading.Event()
    if not camera or threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def _ready() -> list[str]:
    """The domains that can run models."""
    return [
        domain
        for domain in get_args(Domain)
        if importlib.util.find_spec(domain) and importlib.util.find_spec(f"{domain}.api")
    ]


def _domain_of(folder: Path) -> Any:
    """The domain of an artifact, or the one that knows folders of other frameworks such as this one."""
    if folder.is_dir() and not (folder / CONFIG).is_file():
        for name in _ready():
            knows = getattr(importlib.import_module(f"{name}.api"), "is_foreign", None)
            if knows is not None and knows(folder):
                return name
    return load_artifact(folder, stages=False).config.get("domain")


def _domain(name: Any, where: object) -> Any:
    """The module `<domain>.api`."""
    ready = _ready()
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
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: Sequence[str],
    options: Mapping[str, Any] | None = None,
) -> Predictor:
    """The predictor of a config file, of an artifact folder, or of a folder that a domain knows by its `is_foreign`.

    Args:
        options: Options by name, such as {"threshold": 0.4}; None stands for one that was not given.

    Raises:
        ConfigError: the domain cannot run models, or does not take one of the options.
    """
    if model_dir is not None:
        domain = _domain_of(Path(model_dir).expanduser())
        where: object = Path(model_dir) / CONFIG
    else:
        tree = load(str(config), tuple(overrides)).value
        domain, where = tree["domain"].value if "domain" in tree else None, config
    open_ = _domain(domain, where).open_predictor
    given = {name: value for name, value in (options or {}).items() if value is not None}
    parameters = inspect.signature(open_).parameters.values()
    taken = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if foreign := [name for name in given if name not in taken]:
        raise ConfigError(
            f"the domain {domain} does not take this",
            where=where,
            received=", ".join(f"--{name}" for name in foreign),
            allowed=", ".join(f"--{name}" for name in taken) or None,
        )
    return open_(config, model_dir, device, precision, tuple(overrides), **given)


def export(
    config: str, output_dir: Path, overrides: Sequence[str], input_shape: Sequence[int] | None = None
) -> Path:
    """Write the artifact of a config to output_dir/<name of the config>; returns that folder.

    Raises:
        ConfigError: the domain cannot run models, or has no `input_shape` (N, C, H, W).
    """
    tree = load(config, tuple(overrides)).value
    domain = tree["domain"].value if "domain" in tree else None
    make = _domain(domain, config).export_artifact
    given: dict[str, Any] = {}
    if input_shape is not None:
        if "input_shape" not in inspect.signature(make).parameters:
            raise ConfigError(
                f"the domain {domain} does not take this",
                where=config,
                received="--input_shape",
                fix="leave it out: the config says what its programs take",
            )
        given["input_shape"] = tuple(input_shape)
    return make(config, tuple(overrides), **given).save(output_dir / Path(config).stem)


def check_sources(
    image_file: str | None,
    image_dir: str | None,
    pdf_file: str | None,
    video_file: str | None,
    camera_id: int | None = None,
    text: str | None = None,
    text_file: str | None = None,
    pair: str | None = None,
) -> None:
    """Before a model is loaded: is there something to read? A camera is not looked for. Raises: InputError."""
    if pair is not None and text is None:
        raise InputError(
            "--pair is the second text of a pair", received="no --text", fix="give --text as well"
        )
    if camera_id is not None or text is not None:
        return
    given = next((s for s in (image_file, image_dir, pdf_file, video_file, text_file) if s is not None), None)
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
    camera_id: int | None = None,
    text: str | None = None,
    text_file: str | None = None,
    pair: str | None = None,
    draw: bool = True,
    save: bool = False,
) -> Report:
    """Read the one source that is given and write the results to `output_dir`; `save` asks for one file of all too.

    `pair` is the second text of a pair with `text`. Where the model takes pairs, a line of `text_file` has two texts
    with a tab between them.
    """
    has_text = text is not None or text_file is not None
    if has_text != hasattr(predictor, "texts"):
        raise ConfigError(
            "this model reads something else",
            received="a text" if has_text else "images or a video",
            allowed="images, videos" if has_text else "--text, --text_file",
        )
    if has_text:
        lines: Sequence[str | tuple[str, str]] = (
            read_lines(Path(str(text_file))) if text is None else [text if pair is None else (text, pair)]
        )
        if getattr(predictor, "pairs", False):
            lines = _pairs(lines, "--text" if text is not None else str(text_file))
        return run_texts(predictor, lines, output_dir)
    if video_file is not None:
        return run_video(predictor, Path(video_file), output_dir, draw, save)
    if camera_id is not None:
        return run_video(predictor, camera_id, output_dir, draw, save)
    if pdf_file is not None:
        if save:
            raise ConfigError(
                "there is no single file for the pages of a PDF",
                received="--save_results",
                fix="leave it out: there is a JSON file for each page",
            )
        return run_pdf(predictor, Path(pdf_file), output_dir, draw)
    files = [Path(image_file)] if image_file is not None else vision_image.list_images(str(image_dir))
    if not files:
        raise InputError(
            "the folder holds no image",
            where=image_dir,
            allowed="files such as .jpg, .png, .tif, .bmp, .webp",
        )
    return run_images(predictor, files, output_dir, draw, save)
