"""The networks of a document reader: each is opened when it is first needed, on the runtime that was chosen, once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import cast

from framework.core.errors import InputError
from framework.inference import Runtime
from framework.workflow import open_predictor
from framework.workflow.domain.config_file import ConfigFile
from framework.workflow.domain.domain import Model
from ocr.documents.field_model import open_fields
from ocr.documents.layout_model import LayoutDetector, open_layout
from ocr.documents.lazy import Lazy
from ocr.documents.options import DocumentOptions
from ocr.fields.rules import FieldModel, name_of_key
from ocr.formulas.blocks import FormulaReader
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.single_stage import FormulaPages

DEFAULT_LAYOUT = "picodet_s_layout_synthetic"


def lazy_ocr(
    model: Model | ConfigFile,
    runtime: Runtime,
    overrides: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
) -> Lazy[OCRPredictor]:
    """`ocr.predictor` of this model: what reads text layers alone loads none."""

    def open_ocr() -> OCRPredictor:
        opened = open_predictor(model, domain="ocr", runtime=runtime, overrides=overrides, options=options)
        return cast(OCRPredictor, opened)

    return Lazy(open_ocr)


def lazy_formula(model: str, runtime: Runtime) -> Lazy[FormulaReader]:
    """A formula network, by its name or its artifact's folder. `get` raises InputError where it is of another kind."""

    def open_formula() -> FormulaReader:
        opened = cast(OCRPredictor, open_predictor(model, domain="ocr", runtime=runtime))
        if not isinstance(opened.pipeline, FormulaPages):
            raise InputError(
                "this model reads no formulas",
                where="formula_model",
                received=model,
                allowed="PP-FormulaNet-S, PP-FormulaNet_plus-S, or an artifact of a model of configs/ocr/formula",
            )
        return opened.pipeline.stage

    return Lazy(open_formula)


@functools.cache
def default_layout(runtime: Runtime) -> Lazy[LayoutDetector]:
    """The layout network that is shipped; one for each runtime, which all documents share."""
    return Lazy(lambda: open_layout(DEFAULT_LAYOUT, runtime=runtime))


def open_field_model(options: DocumentOptions, runtime: Runtime) -> FieldModel | None:
    """The model that the options name for fields; None: rules find them. Raises: as `open_fields`."""
    if options.fields_model is None:
        return None
    return open_fields(options.fields_model, options.relations_model, runtime=runtime, name_key=name_of_key)
