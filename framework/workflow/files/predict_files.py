"""Run a predictor over files, folders, PDFs and videos, and write what it finds: the loop behind `oar infer`."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tqdm import tqdm

from framework.core.bounded import check_file
from framework.core.disk import DiskError
from framework.core.errors import ConfigError, InputError, OarError
from framework.core.interrupts import catch_interrupt
from framework.core.types import JSON
from framework.text.lines import read_lines
from framework.vision import image as vision_image
from framework.vision.video import SUFFIXES as VIDEO_SUFFIXES
from framework.vision.video import is_stream
from framework.workflow.domain.outputs import (
    Report,
    fit_name,
    make_folder,
    spare_sources,
    stems,
    text_file,
    write_json,
)
from framework.workflow.domain.predictor import (
    AnyPredictor,
    I,
    ImageItem,
    ImagePredictor,
    LanguagePredictor,
    Predictor,
    ResultWriter,
    RowPredictor,
    Text,
)
from framework.workflow.domain.result import Result
from framework.workflow.files.pdf import PdfReader
from framework.workflow.files.sources import Sources
from framework.workflow.files.text_tables import read_table_texts
from framework.workflow.files.videos import open_writer, run_video, write_texts

AnyVision = ImagePredictor[Any]
log = logging.getLogger("oar")
SOURCES = ("image_file", "image_dir", "pdf_file", "video_file", "camera_id", "text", "text_file", "pair")


def run_images(
    predictor: AnyVision,
    files: Iterable[Path],
    output_dir: Path,
    draw: bool = True,
    save: bool = False,
    labels: Mapping[Path, str] | None = None,
) -> Report:
    """Read every image; a file that cannot be read is reported and the others are read.

    The pages of one file are called <stem>_page1, <stem>_page2, … where it has several. `save` asks for the one file of
    all results besides; `labels` say what files are called in results and messages.
    """
    report = Report()
    files = list(dict.fromkeys(files))
    stopped = threading.Event()
    labels = labels or {}
    writer = predictor.result_writer("", [str(file) for file in files]) if save else None
    suffixes = (".png", *predictor.extra_suffixes)
    endings = [suffix.removesuffix(Path(suffix).suffix) for suffix in ("", *predictor.extra_suffixes)]
    names = stems(files, [] if writer is None else [Path(writer.name).stem], endings)
    if draw:
        spare_sources(files, (output_dir / f"{name}{end}" for name in names.values() for end in suffixes))
    waiting: deque[str] = deque()

    def items() -> Iterator[ImageItem]:
        for file, stem in names.items():
            if stopped.is_set():
                return
            label = labels.get(file, str(file))
            several, pages = False, _pages_of(predictor, file, label, report)
            for item, is_last in pages:
                several |= not is_last
                waiting.append(f"{stem}_page{item.number}" if several else stem)
                report.notes += [f"{label}: {warning}" for warning in item.warnings]
                yield item._replace(source=label)

    with catch_interrupt(stopped):
        _collect(predictor, items(), waiting, output_dir, draw, report, len(names), writer)
    report.note_stop(stopped.is_set())
    return report


def _pages_of(
    predictor: AnyVision, file: Path, label: str, report: Report
) -> Iterator[tuple[ImageItem, bool]]:
    """The items of a file, each with whether it is the last one. What cannot be read is reported."""
    pages = predictor.read_all(file)

    def following() -> ImageItem | None:
        try:
            return next(pages, None)
        except OarError as error:
            report.failed.append((label, str(error)))
            return None

    item = following()
    while item is not None:
        item, before = following(), item
        yield before, item is None


def run_pdf(
    predictor: AnyVision,
    file: Path,
    output_dir: Path,
    draw: bool = True,
    dpi: float = 200.0,
    stem: str | None = None,
) -> Report:
    """Read every page of a PDF; outputs are called <stem>_page1, <stem>_page2, …, by default after the file."""
    report = Report()
    waiting: deque[str] = deque()
    stopped = threading.Event()
    try:
        with PdfReader(file, dpi=dpi) as pages, catch_interrupt(stopped):

            def items() -> Iterator[ImageItem]:
                for number, image in enumerate(pages, start=1):
                    if stopped.is_set():
                        return
                    waiting.append(f"{stem or file.stem}_page{number}")
                    yield ImageItem(image, str(file), number)

            _collect(predictor, items(), waiting, output_dir, draw, report, len(pages))
    except DiskError:
        raise
    except OarError as error:
        report.failed.append((str(file), str(error)))
    report.note_stop(stopped.is_set())
    return report


def _collect(
    predictor: ImagePredictor[I],
    items: Iterator[ImageItem],
    waiting: deque[str],
    output_dir: Path,
    draw: bool,
    report: Report,
    total: int,
    writer: ResultWriter[I] | None = None,
) -> None:
    make_folder(output_dir)
    with ExitStack() as stack:
        bar = stack.enter_context(
            tqdm(total=total, unit="page", disable=total < 2 or not sys.stderr.isatty())
        )
        add = stack.enter_context(open_writer(writer, output_dir))
        count = empty = 0
        for number, result in enumerate(predictor.predict_stream(items)):
            count, empty = number + 1, empty + result.is_empty
            stem = fit_name(waiting.popleft(), (".json", ".png", *predictor.extra_suffixes))
            write_json(output_dir / f"{stem}.json", _content(result, predictor))
            report.written.append(output_dir / f"{stem}.json")
            add(result, number)
            report.written += write_texts(result, predictor, output_dir, stem)
            if draw:
                vision_image.write(output_dir / f"{stem}.png", result.draw())
                report.written.append(output_dir / f"{stem}.png")
                for suffix in predictor.extra_suffixes:
                    result.write_extra(suffix, output_dir / f"{stem}{suffix}")
                    report.written.append(output_dir / f"{stem}{suffix}")
            bar.update(1)
    report.note_empty(empty, count, "images", predictor.empty_note)
    if writer is not None:
        report.written.append(output_dir / writer.name)


def _read_pairs(lines: Sequence[str], where: str) -> list[Text | InputError]:
    """The first two columns of each line that is not blank, with a tab between them; an error for one without a tab."""
    pairs: list[Text | InputError] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        columns = line.split("\t")
        pairs.append(
            (columns[0], columns[1])
            if len(columns) > 1
            else InputError(
                "the model takes two texts",
                where=f"{where}, line {number}",
                received=repr(line[:60]),
                allowed="two texts with a tab between them",
                fix="with --text the second one is given as --pair",
            )
        )
    return pairs


def run_texts(
    predictor: LanguagePredictor[Any], texts: Sequence[Text | InputError], output_dir: Path
) -> Report:
    """What `predictor.predict_attempts` finds in each text, a line each, in results.jsonl.

    A text that cannot be read, or is an error already, is reported, its line says why, and the others are read.
    """
    make_folder(output_dir)
    path = output_dir / "results.jsonl"
    report = Report([path])
    stopped = threading.Event()
    with text_file(path) as out, catch_interrupt(stopped):
        attempts = iter(
            predictor.predict_attempts(text for text in texts if not isinstance(text, InputError))
        )
        found = tqdm(
            (text if isinstance(text, InputError) else next(attempts) for text in texts),
            total=len(texts),
            unit="text",
            disable=len(texts) < 2 or not sys.stderr.isatty(),
        )
        for number, (text, result) in enumerate(zip(texts, found), start=1):
            if isinstance(result, OarError):
                report.failed.append((f"text {number}", f"text {number}: {result}"))
                fields = (
                    {}
                    if isinstance(text, InputError)
                    else {"text": text if isinstance(text, str) else text[0]}
                )
                line = {**fields, "error": str(result)}
            else:
                line = _content(result, predictor)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            if stopped.is_set():
                break
    report.note_stop(stopped.is_set())
    return report


def _content(result: Result, predictor: AnyPredictor) -> dict[str, JSON]:
    """What is written of a result: with what is to be said of the engines that gave it."""
    content = result.to_dict()
    if not predictor.engine_warnings:
        return content
    warnings = content.get("warnings")
    listed = warnings if isinstance(warnings, list) else []
    return {**content, "warnings": [*listed, *predictor.engine_warnings]}


def run_rows(predictor: RowPredictor[Result], files: Mapping[Path, str], output_dir: Path) -> Report:
    """What the predictor says of each row of tables, a line each, in <name of the file>.jsonl; memory does not grow.

    A row that cannot be read or encoded has a line with its error. What is no table ends its file; the others are read.
    """
    make_folder(output_dir)
    report = Report()
    stopped = threading.Event()
    with catch_interrupt(stopped):
        for path, stem in stems(list(files), (), ("",)).items():
            if stopped.is_set():
                break
            target = output_dir / f"{stem}.jsonl"
            report.written.append(target)
            with text_file(target) as out:
                try:
                    results = predictor.predict_attempts(predictor.read_file(path))
                    for number, result in enumerate(results, start=1):
                        if isinstance(result, OarError):
                            report.failed.append((f"{files[path]}, row {number}", str(result)))
                            line = {"error": str(result)}
                        else:
                            line = _content(result, predictor)
                        out.write(json.dumps(line, ensure_ascii=False) + "\n")
                        if stopped.is_set():
                            break
                except DiskError:
                    raise
                except OarError as error:
                    report.failed.append((files[path], str(error)))
    report.note_stop(stopped.is_set())
    return report


def predict_sources(
    predictor: Predictor,
    output_dir: Path,
    sources: Sources,
    *,
    draw: bool = True,
    save: bool = False,
    stride: int = 1,
) -> Report:
    """Read files, each as its name says: images, PDFs, videos and streams; see `predict_files`."""
    labels = {file.path: file.label for file in sources.files}
    if isinstance(predictor, RowPredictor) and not sources.streams:
        report = run_rows(predictor, labels, output_dir)
        report.notes += sources.notes
        return report
    images = [path for path in labels if path.suffix.lower() not in (".pdf", *VIDEO_SUFFIXES)]
    reports = []
    pdfs = [path for path in labels if path.suffix.lower() == ".pdf"]
    videos = [path for path in labels if path.suffix.lower() in VIDEO_SUFFIXES]
    for path, stem in (stems(pdfs) | stems(videos)).items():  # by kind: their outputs have other endings
        pdf, video = (str(path), None) if path in pdfs else (None, str(path))
        reports.append(
            predict_files(
                predictor,
                output_dir,
                pdf_file=pdf,
                video_file=video,
                draw=draw,
                save=save,
                stride=stride,
                stem=stem,
            )
        )
    for address in sources.streams:
        reports.append(run_video(_vision(predictor), address, output_dir, draw, save, stride))
    if images:
        reports.append(run_images(_vision(predictor), images, output_dir, draw, save, labels))
    whole = Report(notes=list(sources.notes))
    for report in reports:
        whole.written += report.written
        whole.failed += report.failed
        whole.notes += report.notes
        whole.interrupted |= report.interrupted
    return whole


def _vision(predictor: Predictor) -> AnyVision:
    """Raises: ConfigError, where the model takes texts."""
    if not isinstance(predictor, ImagePredictor):
        raise ConfigError(
            "this model takes something else", received="images or a video", allowed="--text, --text_file"
        )
    return predictor


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
    if video_file is not None and is_stream(video_file):
        return
    given = next((s for s in (image_file, image_dir, pdf_file, video_file, text_file) if s is not None), None)
    path = Path(str(given))
    wants_folder = image_dir is not None
    if ":/" in str(given) and not path.exists():
        check_file(str(given), "file", InputError)  # which knows addresses
    if not (path.is_dir() if wants_folder else path.is_file()):
        raise InputError(
            f"there is no such {'folder' if wants_folder else 'file'}",
            where=given,
            received="a folder" if path.is_dir() else "a file" if path.is_file() else "nothing at this path",
            fix="--image_dir takes folders, the other options take files"
            if path.exists()
            else "check the path",
        )


def predict_files(
    predictor: AnyPredictor,
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
    stride: int = 1,
    stem: str | None = None,
) -> Report:
    """Read the one source that is given and write the results to `output_dir`; `save` asks for one file of all too.

    `video_file` may be the address of a stream, such as rtsp://camera/stream. Of each `stride` frames one is read.

    `pair` is the second text of a pair with `text`. Where the model takes pairs, a line of `text_file` has two texts
    with a tab between them. Of a table or JSON, such as texts.csv, the columns with usual titles are read.

    `stem` is what the outputs of a video or a PDF are called after, by default its own.
    """
    has_text = text is not None or text_file is not None
    if isinstance(predictor, LanguagePredictor) and has_text:
        if text is not None and pair is not None:
            return run_texts(predictor, [(text, pair)], output_dir)
        table = None if text_file is None else read_table_texts(Path(text_file), predictor.pairs)
        if table is not None:
            return run_texts(predictor, table, output_dir)
        lines = read_lines(Path(str(text_file))) if text is None else [text]
        if not predictor.pairs:
            return run_texts(predictor, lines, output_dir)
        texts = _read_pairs(lines, "--text" if text is not None else str(text_file))
        errors = [one for one in texts if isinstance(one, InputError)]
        if errors and len(errors) == len(texts):  # a file of another form, and no slip
            raise errors[0]
        return run_texts(predictor, texts, output_dir)
    if isinstance(predictor, ImagePredictor) and has_text:
        raise ConfigError("this model takes something else", received="a text", allowed="images, videos")
    predictor = _vision(predictor)
    if video_file is not None:
        video = video_file if is_stream(video_file) else Path(video_file)
        return run_video(predictor, video, output_dir, draw, save, stride, stem)
    if camera_id is not None:
        return run_video(predictor, camera_id, output_dir, draw, save, stride)
    if pdf_file is not None:
        if save:
            raise ConfigError(
                "there is no single file for the pages of a PDF",
                received="--save_results",
                fix="leave it out: there is a JSON file for each page",
            )
        return run_pdf(predictor, Path(pdf_file), output_dir, draw, stem=stem)
    files = [Path(image_file)] if image_file is not None else vision_image.list_images(str(image_dir))
    if not files:
        raise InputError(
            "the folder holds no image",
            where=image_dir,
            allowed="files such as .jpg, .png, .tif, .bmp, .webp",
        )
    return run_images(predictor, files, output_dir, draw, save)
