"""The networks of tables, opened by name: structure, cells, and which kind of table an image shows.

A name with `{kind}` stands for two models, "wired" and "wireless", of tables with ruling lines and without; a
classifier chooses. No code of the domains that trained detectors and classifiers takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.inference import Runtime
from framework.vision.sample import Sample
from framework.workflow import ImageItem, find_artifact, open_predictor
from framework.workflow.runners.image_runner import ImageRunner, SourceBoxes, open_runner, read_boxes
from ocr.documents.once import Once
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.single_stage import TablePages
from ocr.results.blocks import Table
from ocr.tables.detected_cells import DetectedTableReader
from ocr.tables.network_tables import TableReader

Kind = Literal["wired", "wireless"]
KIND = "{kind}"
# Short names of pairs of models.
PAIRS = {"SLANeXt": "SLANeXt_{kind}", "RT-DETR-L_table_cell_det": "RT-DETR-L_{kind}_table_cell_det"}
_LEAST_SCORE = 0.3  # of a cell


class CellBoxes:
    """The boxes of a table's cells by a detector. Made by `open_cells`."""

    def __init__(self, runner: ImageRunner[SourceBoxes]) -> None:
        self.runner = runner

    def __call__(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (found,) = self.runner.predict([ImageItem(image, "", 1)])
        return found.boxes, found.scores


def open_cells(model: str, runtime: Runtime | None = None) -> CellBoxes:
    """The detector of a table's cells, by its name or its artifact's folder.

    Raises:
        InputError: no such model. HubError: its weights are neither here nor reachable.
        FormatError: it is of another domain, or has no class "cell".
    """
    runtime = runtime or Runtime()
    found = find_artifact(model, (), "detection", runtime)
    names = found.artifact.setting("labels", tuple[str, ...], ())
    if "cell" not in names:
        raise FormatError(
            "this model does not find the cells of tables",
            where="cell_model",
            received=f"classes {', '.join(names[:8])}" if names else "no classes",
            allowed='a detector with the class "cell", such as RT-DETR-L_wired_table_cell_det',
        )
    number = names.index("cell")

    def interpret(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> SourceBoxes:
        boxes = read_boxes(outputs, sample, _LEAST_SCORE)
        return SourceBoxes(*(array[boxes.labels == number] for array in boxes))

    return CellBoxes(open_runner(found.artifact, interpret, runtime, found.domain.packages, 1))


def open_kinds(model: str, runtime: Runtime | None = None) -> Callable[[np.ndarray], Kind]:
    """What tells of an image of a table which kind it is, by a classifier's name or its artifact's folder.

    Raises: InputError, HubError, FormatError, as `open_predictor`; FormatError at a call, where the class is none.
    """
    classifier: Any = open_predictor(model, domain="classification", runtime=runtime or Runtime())

    def tell(image: np.ndarray) -> Kind:
        label = str(classifier(image).label)
        for kind in ("wireless", "wired"):  # "wired_table" and "wireless_table" upstream
            if label.startswith(kind):
                return kind
        raise FormatError(
            "this model does not tell tables with ruling lines from others",
            where="table_classification_model",
            received=f"the class {label!r} of {model}",
            allowed="classes wired_table and wireless_table",
        )

    return tell


class KindTableReader:
    """Reads tables by the network of their kind; each is opened when it is first needed."""

    def __init__(
        self, tell: Callable[[np.ndarray], Kind], open_reader: Callable[[Kind], TableReader]
    ) -> None:
        self.tell, self.open_reader = tell, Once(open_reader)

    def __call__(self, image: np.ndarray) -> Table:
        return self.open_reader(self.tell(image))(image)


def open_structure(model: str, runtime: Runtime | None = None) -> TableReader:
    """The network of a table's structure, by its name or its artifact's folder.

    Raises:
        InputError: there is no such model, or it is of another kind.
    """
    found = cast(OCRPredictor, open_predictor(model, domain="ocr", runtime=runtime or Runtime()))
    if not isinstance(found.pipeline, TablePages):
        raise InputError(
            "this model reads no tables",
            where="table_model",
            received=model,
            allowed="table_grid_s, SLANet, SLANet_plus, SLANeXt, SLANeXt_wired, SLANeXt_wireless, table_master, or an "
            "artifact of a model of configs/ocr/table",
        )
    return found.pipeline.stage


def make_table_opener(
    model: str,
    runtime: Runtime,
    cell_model: str | None = None,
    kind_model: str = "PP-LCNet_x1_0_table_cls",
) -> Callable[[], TableReader]:
    """A function that opens what reads tables when it is first called.

    Args:
        model: The network of the structure.
        runtime: What all of them run on.
        cell_model: A detector, for the boxes of cells; None: the structure's own.
        kind_model: The classifier that chooses where one of the two has `{kind}` in its name, or is one of PAIRS.
    """
    structure, cells = (PAIRS.get(name, name) if name else "" for name in (model, cell_model))

    # A model that serves both kinds is opened once, too.
    open_reader = Once(lambda name: open_structure(name, runtime))
    open_detector = Once(lambda name: open_cells(name, runtime))

    def open_kind(kind: Kind) -> TableReader:
        reader = open_reader(structure.replace(KIND, kind))
        if not cells:
            return reader
        return DetectedTableReader(reader, open_detector(cells.replace(KIND, kind)))

    @Once
    def open_table() -> TableReader:
        if KIND in structure + cells:
            return KindTableReader(open_kinds(kind_model, runtime), open_kind)
        return open_kind(get_args(Kind)[0])

    return open_table
