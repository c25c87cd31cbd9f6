"""Images of single lines of text with labels, cut of pages along what the detector finds, for `oar data lines`."""

from __future__ import annotations

import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np
from tqdm import tqdm

from framework.core.disk import disk_errors, whole_folder, write_file
from framework.core.errors import FormatError, InputError, OarError
from framework.inference import Runtime
from framework.vision import image
from framework.vision.dataset_files import read_image
from framework.workflow import ImageItem, open_predictor, option
from framework.workflow.domain.domain import Model
from framework.workflow.domain.options import check_range
from framework.workflow.domain.outputs import Report, stems, text_file
from ocr.data.labels import PageLabel, read_page_labels
from ocr.data.line_matching import longest_run, match_line, says_another, take_case
from ocr.data.pages import TextPageFiles
from ocr.pipeline.options import DEFAULT_MODEL
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.single_stage import SingleStage
from ocr.pipeline.text_pipeline import OCRPipeline
from ocr.results.lines import Line
from ocr.results.pages import Page
from ocr.text.label_files import LineLabel, read_line_labels
from ocr.text.preprocess import crop_lines
from ocr.text.stages import Recognizer, RecognizerGroup

IMAGES, LABELS, MISREAD, READINGS = "images", "labels.txt", "misread.txt", "readings.tsv"
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


@dataclass(frozen=True)
class LineOptions:
    """What `oar data lines` is asked for. Raises: InputError, where an option is out of range or needs labels."""

    labels: tuple[str, ...] = option(
        (),
        "label files of PaddleOCR, or folders with a file of regions for each image, as of ICDAR 2015 and SROIE; seen "
        "from here or from SOURCE. Without it the model's own readings are the labels",
    )
    cropped: bool = option(False, "the images are lines or words already, and are read whole")
    text: Literal["labels", "recased", "predicted"] | None = option(
        None,
        "what is written as label: that of --labels (default), the same with capital and small letters as they were "
        "read, or what the model reads",
    )
    min_score: float = option(0.5, "lines that are read with a lower mean probability are left out")
    max_cer: float | None = option(
        None,
        "lines are left out where more of a label's characters than this share are read otherwise, and more than one: "
        "such labels may be another line's",
    )
    max_run: int | None = option(
        None, "lines are left out in whose text a sign stands more often in a row, such as *** for 2"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        check_range(self.min_score, "min_score", 0, 1)
        if self.max_cer is not None and not self.max_cer >= 0:
            raise InputError(
                "max_cer is too small", where="max_cer", received=self.max_cer, allowed="0 or more"
            )
        if self.max_run is not None and self.max_run < 1:
            raise InputError(
                "max_run is too small", where="max_run", received=self.max_run, allowed="1 or more"
            )
        if not self.labels and self.text in ("labels", "recased"):
            raise InputError(
                "there are no labels",
                where="text",
                received=self.text,
                allowed="predicted",
                fix="name them: --labels FILE",
            )

    @property
    def labelled(self) -> bool:
        """Whether what is written are texts of labels."""
        return bool(self.labels) and self.text != "predicted"


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
    source: str | Path,
    output: str | Path,
    options: LineOptions | None = None,
    *,
    model: Model | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
) -> Report:
    """Write lines of the images in a folder as data to train a recogniser on, cut as the reader cuts them.

    * `<output>/images` has them, `<output>/labels.txt` their texts, `image<tab>text` a line, as PaddleOCR has it.
    * `<output>/misread.txt` has those lines of it that the model reads otherwise.
    * `<output>/readings.tsv` has a row for each line that was found: the image, the label, what the model reads, its
      mean probability, and why the line was left out, if it was; then the image is the page.

    The folder appears whole or not at all. An image that cannot be read is reported, and the others are read.

    Args:
        source: Pages; with `options.cropped` images of lines.
        model: What reads, default: the usual model.
        overwrite: Whether an output that was written here before may be replaced.

    Raises:
        InputError: there are no such images or labels, no line is left, or the output is there already.
        FormatError: a file of labels is none, or the model reads no pages or lines. DiskError: the disk takes no more.
    """
    source, output = Path(source), Path(output)
    if not source.is_dir():
        raise InputError("there is no such folder", where=source, fix=f"the current folder is {Path.cwd()}")
    _check_output(output, overwrite)
    with whole_folder(output) as folder:
        report = _write(source, folder, options or LineOptions(), model or DEFAULT_MODEL, runtime, overrides)
    report.written = [output / path.relative_to(folder) for path in report.written]
    return report


def _check_output(output: Path, overwrite: bool) -> None:
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    ours = output.is_dir() and {path.name for path in output.iterdir()} <= {IMAGES, LABELS, MISREAD, READINGS}
    if not (ours and overwrite):
        fix = "name another folder, or move it away"
        raise InputError(
            "the output is there already",
            where=output,
            received=None if ours else "other files than are written here",
            fix=f"{fix}; or --overwrite" if ours else fix,
        )


def _write(
    source: Path,
    folder: Path,
    options: LineOptions,
    model: Model,
    runtime: Runtime | None,
    overrides: Sequence[str],
) -> Report:
    """Write the lines of `source` into the empty `folder`; the model is opened once the labels are read."""

    def open_model() -> OCRPredictor:
        given = {"drop_score": 0.0}  # no line is dropped for its score
        found = open_predictor(model, domain="ocr", runtime=runtime, overrides=overrides, options=given)
        return cast(OCRPredictor, found)

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
    legible = sum(region.has_text for region in label.regions)
    run.regions, run.uncovered = run.regions + legible, run.uncovered + legible - len(covered)


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
