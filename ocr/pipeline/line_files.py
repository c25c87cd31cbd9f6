"""Lines of pages as images with labels, cut along what the detector finds; see framework/workflow/data/lines.py."""

from __future__ import annotations

import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from framework.core.disk import disk_errors, write_file
from framework.core.errors import FormatError, InputError, OarError
from framework.vision import image
from framework.vision.dataset_files import read_image
from framework.workflow import ImageItem
from framework.workflow.data.lines import IMAGES, LABELS, MISREAD, READINGS, LineOptions
from framework.workflow.domain.outputs import Report, stems, text_file
from ocr.data.labels import LineLabel, PageLabel, read_line_labels, read_page_labels
from ocr.data.line_matching import longest_run, match_line, says_another, take_case
from ocr.data.pages import TextPageFiles
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.single_stage import SingleStage
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.lines import Line
from ocr.results.pages import Page
from ocr.text.preprocess import crop_lines
from ocr.text.stages import Recognizer, RecognizerGroup

_BATCH = 64  # cropped lines that are read at once
_UNWRITABLE = re.compile("[\t\r\n\ud800-\udfff]")  # in a label file
_REASONS = {
    "no label": "without a label",
    "cut otherwise": "cut otherwise than their labels",
    "unreadable": "of regions that are marked as unreadable",
    "curved": "curved",
    "low score": "read with a lower mean probability than min_score",
    "no text": "without text",
    "run of signs": "with more than max_run equal signs in a row",
    "says another": "read otherwise than max_cer allows",
}


class _Row(NamedTuple):
    """A row of `readings.tsv`."""

    image: str
    text: str
    reading: str
    score: float
    left_out: str = ""

    def line(self) -> str:
        return f"{self.image}\t{self.text}\t{self.reading}\t{self.score:.4f}\t{self.left_out}\n"


@dataclass
class _Run:
    """What is written while the images are read."""

    folder: Path
    options: LineOptions
    labelled: bool
    report: Report = field(default_factory=Report)
    rows: list[_Row] = field(default_factory=list)
    regions: int = 0
    uncovered: int = 0

    def add(self, row: _Row, page: str) -> bool:
        """Keep the row as it is to be written; whether its image is wanted."""
        row = row._replace(text=_clean(row.text), reading=_clean(row.reading))
        if not row.left_out:
            text = take_case(row.text, row.reading) if self.options.text == "recased" else row.text
            row = row._replace(text=text, left_out=self._judge(text, row.reading, row.score))
        self.rows.append(row._replace(image=page) if row.left_out else row)
        return not row.left_out

    def _judge(self, text: str, reading: str, score: float) -> str:
        options = self.options
        if not text.strip():
            return "no text"
        if score < options.min_score:
            return "low score"
        if options.max_run is not None and longest_run(text) > options.max_run:
            return "run of signs"
        if options.max_cer is not None and says_another(text, reading, options.max_cer):
            return "says another"
        return ""

    def finish(self, source: Path) -> Report:
        """Write the files of labels. Raises: InputError, where no line is left."""
        kept = [row for row in self.rows if not row.left_out]
        left_out = Counter(row.left_out for row in self.rows if row.left_out)
        notes = [f"left out: {count} {_REASONS[why]}" for why, count in left_out.most_common()]
        if self.labelled and not self.options.cropped:
            notes.append(
                f"{self.uncovered} of {self.regions} labelled regions are in no line that was written"
            )
        if not kept:
            failed = [message for _, message in self.report.failed[:1]]
            raise InputError(
                "no line is left", where=source, received="; ".join([*notes, *failed]) or "no image"
            )
        misread = [row for row in kept if row.text != row.reading]
        self._write(LABELS, (f"{row.image}\t{row.text}\n" for row in kept))
        if self.labelled:
            self._write(MISREAD, (f"{row.image}\t{row.text}\n" for row in misread))
            notes.insert(0, f"{len(misread)} of them read otherwise than their labels say")
        self._write(READINGS, ["image\ttext\treading\tscore\tleft_out\n", *(row.line() for row in self.rows)])
        self.report.notes = [f"{len(kept)} lines", *notes]
        return self.report

    def _write(self, name: str, lines: Iterable[str]) -> None:
        with text_file(self.folder / name) as out:
            out.writelines(lines)
        self.report.written.append(self.folder / name)


def write_lines(
    source: Path, folder: Path, options: LineOptions, open_model: Callable[[], OCRPredictor]
) -> Report:
    """Write the lines of `source` into the empty `folder`.

    Args:
        open_model: Gives what reads, which drops no lines for their scores; called once the labels are read.

    Raises: as framework.workflow.data.lines.write_lines.
    """
    run = _Run(folder, options, options.labelled)
    with disk_errors(folder):
        (folder / IMAGES).mkdir()
    if options.cropped:
        lines = _list_lines(source, options.labels)
        _copy_lines(run, source, lines, _find_recognizer(open_model()))
    else:
        pages = _list_pages(source, options.labels)
        _cut_pages(run, source, pages, _find_pipeline(open_model()))
    return run.finish(source)


# -- pages -------------------------------------------------------------------------------------------------------------


def _cut_pages(run: _Run, source: Path, pages: Sequence[PageLabel], pipeline: OCRPipeline) -> None:
    names = _names(source / label.image for label in pages)
    waiting: deque[PageLabel] = deque()

    def items() -> Iterator[ImageItem]:
        for label in pages:
            path = source / label.image
            try:
                item = ImageItem(read_image(path, path), str(path))
            except OarError as error:
                run.report.failed.append((str(path), str(error)))
                continue
            waiting.append(label)
            yield item

    with tqdm(total=len(pages), unit="page", disable=_is_quiet(len(pages))) as bar:
        for page in pipeline.predict_stream(items()):
            label = waiting.popleft()
            _cut_page(run, page, label, names[source / label.image])
            bar.update(1)


def _cut_page(run: _Run, page: Page, label: PageLabel, stem: str) -> None:
    assert page.image is not None
    covered: set[int] = set()
    for number, line in enumerate(page.lines):
        row = _Row(f"{IMAGES}/{stem}_{number}.png", line.text, line.text, line.score)
        quad, members = np.asarray(line.polygon, np.float32), ()
        if run.labelled:
            members, problem = match_line(quad[:4], label.regions, vertical=line.vertical)
            row = row._replace(
                text=" ".join(label.regions[member].text.strip() for member in members), left_out=problem
            )
        if len(quad) != 4:
            row = row._replace(left_out="curved")
        if run.add(row, label.image):
            image.write(run.folder / row.image, _cut_line(page.image, line, quad))
            covered.update(members)
    readable = sum(region.readable for region in label.regions)
    run.regions, run.uncovered = run.regions + readable, run.uncovered + readable - len(covered)


def _cut_line(pixels: np.ndarray, line: Line, quad: np.ndarray) -> np.ndarray:
    """What the recogniser sees of a line: upright, columns from left to right."""
    (crop,) = crop_lines(pixels, quad[None], np.array([line.vertical]))
    return np.ascontiguousarray(crop)


def _list_pages(source: Path, labels: Sequence[str]) -> list[PageLabel]:
    """The pages of the label files, each once; of the folder without any."""
    if not labels:
        return [PageLabel(name, (), name) for name in _list_names(source)]
    found: dict[str, PageLabel] = {}
    for path in _find_labels(source, labels):
        if path.is_dir():
            pages = TextPageFiles(source, Path(), path).labels_of_pages()
        else:
            pages = read_page_labels(path)
        found |= {label.image: label for label in pages}
    return list(found.values())


def _find_pipeline(predictor: OCRPredictor) -> OCRPipeline:
    if isinstance(predictor.pipeline, OCRPipeline):
        return predictor.pipeline
    raise FormatError(
        "this model finds no lines on pages",
        where=predictor.name,
        allowed="a detector with a recogniser, such as pp_ocrv6_small",
        fix="for images that are lines already: --cropped",
    )


# -- images that are lines ---------------------------------------------------------------------------------------------


def _copy_lines(
    run: _Run, source: Path, labels: Sequence[LineLabel], recognizer: Recognizer | RecognizerGroup
) -> None:
    names, todo = _names(source / label.image for label in labels), iter(labels)
    with tqdm(total=len(labels), unit="line", disable=_is_quiet(len(labels))) as bar:
        while batch := list(islice(todo, _BATCH)):
            found: list[tuple[LineLabel, bytes, np.ndarray]] = []
            for label in batch:
                path = source / label.image
                try:
                    data, _ = image.read_bytes(path, "image")
                    found.append((label, data, read_image(data, path)))
                except OarError as error:
                    run.report.failed.append((str(path), str(error)))
            for (label, data, _), (read, _, _) in zip(found, recognizer([pixels for *_, pixels in found])):
                path = source / label.image
                name = f"{IMAGES}/{names[path]}{path.suffix}"
                text = label.text if run.labelled else read.text
                if run.add(_Row(name, text, read.text, read.score), label.image):
                    write_file(run.folder / name, data)
            bar.update(len(batch))


def _list_lines(source: Path, labels: Sequence[str]) -> list[LineLabel]:
    """The lines of the label files, each image once; of the folder without any."""
    if not labels:
        return [LineLabel(name, "", name) for name in _list_names(source)]
    found: dict[str, LineLabel] = {}
    for path in _find_labels(source, labels):
        if path.is_dir():
            raise InputError(
                "this is no label file", where=path, received="a folder", allowed="image<tab>text a line"
            )
        found |= {label.image: label for label in read_line_labels(path)}
    return list(found.values())


def _find_recognizer(predictor: OCRPredictor) -> Recognizer | RecognizerGroup:
    pipeline = predictor.pipeline
    stage = pipeline.stage if isinstance(pipeline, SingleStage) else pipeline.recognizer
    if isinstance(stage, (Recognizer, RecognizerGroup)):
        return stage
    raise FormatError("this model reads no lines", where=predictor.name, allowed="a model with a recogniser")


# -- what both share ---------------------------------------------------------------------------------------------------


def _list_names(source: Path) -> list[str]:
    """The images of a folder and its subfolders, seen from it. Raises: InputError, where there is none."""
    found = [path.relative_to(source).as_posix() for path in image.list_images(source, recursive=True)]
    if not found:
        raise InputError("there is no image", where=source)
    return found


def _find_labels(source: Path, labels: Sequence[str]) -> list[Path]:
    """Where the labels are: seen from the current folder, else from that of the images."""
    places = [(Path(path).absolute(), (source / path).absolute()) for path in labels]
    return [here if here.exists() else there for here, there in places]


def _names(paths: Iterable[Path]) -> dict[Path, str]:
    """A name for each image that a label file can hold; see `stems`."""
    return {path: _UNWRITABLE.sub("_", stem) for path, stem in stems(paths).items()}


def _clean(text: str) -> str:
    return _UNWRITABLE.sub(" ", text)


def _is_quiet(count: int) -> bool:
    return count < 2 or not sys.stderr.isatty()
