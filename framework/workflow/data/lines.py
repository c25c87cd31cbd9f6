"""Images of single lines of text with labels, cut of pages by the model that reads them, for `oar data lines`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.core.disk import whole_folder
from framework.core.errors import InputError
from framework.inference.runtime import Runtime
from framework.workflow.domain.domain import Model, find_domain
from framework.workflow.domain.options import check_range, option
from framework.workflow.domain.outputs import Report

IMAGES, LABELS, MISREAD, READINGS = "images", "labels.txt", "misread.txt", "readings.tsv"


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


def write_lines(
    source: str | Path,
    output: str | Path,
    options: LineOptions | None = None,
    *,
    model: Model | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
    domain: str = "ocr",
) -> Report:
    """Write lines of the images in a folder as data to train a recogniser on, cut as the reader cuts them.

    * `<output>/images` has them, `<output>/labels.txt` their texts, `image<tab>text` a line, as PaddleOCR has it.
    * `<output>/misread.txt` has those lines of it that the model reads otherwise.
    * `<output>/readings.tsv` has a row for each line that was found: the image, the label, what the model reads, its
      mean probability, and why the line was left out, if it was; then the image is the page.

    The folder appears whole or not at all. An image that cannot be read is reported, and the others are read.

    Args:
        source: Pages; with `options.cropped` images of lines.
        model: What reads, default: that of the domain.
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
        report = find_domain(domain).write_lines(
            source, folder, options or LineOptions(), model, runtime or Runtime(), overrides
        )
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
