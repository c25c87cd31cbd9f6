"""What opens the networks of a document reader: each when it is first called, on the runtime that was chosen, once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from framework.core.errors import InputError
from framework.inference import Runtime
from framework.workflow import open_predictor
from ocr.documents.field_model import FieldModel, open_fields
from ocr.documents.layout_model import LayoutDetector, open_layout
from ocr.documents.once import Once
from ocr.documents.options import DocumentOptions
from ocr.fields.rules import name_of_key
from ocr.formulas.blocks import FormulaReader
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.single_stage import FormulaPages

DEFAULT_LAYOUT = "picodet_s_layout_synthetic"


def make_opener(
    model: str | os.PathLike[str],
    runtime: Runtime,
    overrides: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Callable[[], OCRPredictor]:
    """A function that opens `ocr.predictor` of this model when it is first called: what reads text layers alone loads
    none.
    """

    def open_ocr() -> OCRPredictor:
        found = open_predictor(model, domain="ocr", runtime=runtime, overrides=overrides, options=options)
        return cast(OCRPredictor, found)

    return Once(open_ocr)


def make_formula_opener(model: str, runtime: Runtime) -> Callable[[], FormulaReader]:
    """A function that opens a formula network, by its name or its artifact's folder, when it is first called.

    It raises InputError where the model is of another kind.
    """

    def open_formula() -> FormulaReader:
        found = cast(OCRPredictor, open_predictor(model, domain="ocr", runtime=runtime))
        if not isinstance(found.pipeline, FormulaPages):
            raise InputError(
                "this model reads no formulas",
                where="formula_model",
                received=model,
                allowed="PP-FormulaNet-S, PP-FormulaNet_plus-S, or an artifact of a model of configs/ocr/formula",
            )
        return found.pipeline.stage

    return Once(open_formula)


@Once
def open_default_layout(runtime: Runtime) -> LayoutDetector:
    """The layout network that is shipped; one for each runtime, which all documents share."""
    return open_layout(DEFAULT_LAYOUT, runtime=runtime)


def open_field_model(options: DocumentOptions, runtime: Runtime) -> FieldModel | None:
    """The model that the options name for fields; None: rules find them. Raises: as `open_fields`."""
    if options.fields_model is None:
        return None
    return open_fields(options.fields_model, options.relations_model, runtime=runtime, name_key=name_of_key)
