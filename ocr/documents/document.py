"""`ocr.document`: a reader of documents made of options, and a document read with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from framework.inference import Runtime
from framework.workflow.domain.domain import DefaultName
from framework.workflow.domain.options import make_options, options_signature
from framework.workflow.domain.predictor import ImageSource
from ocr.documents.config import require_document_config
from ocr.documents.layout_model import open_layout
from ocr.documents.lazy import Lazy
from ocr.documents.loaders import default_layout, lazy_formula, lazy_ocr, open_field_model
from ocr.documents.options import DocumentOptions
from ocr.documents.reader import DocumentReader
from ocr.documents.table_models import lazy_table
from ocr.documents.whole_document import finish_document
from ocr.fields.rules import FieldFinder
from ocr.pipeline.options import DEFAULT_MODEL
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Document


def make_reader(
    options: DocumentOptions,
    ocr: Lazy[OCRPredictor],
    runtime: Runtime | None = None,
    *,
    images: bool = False,
) -> DocumentReader:
    """The reader that options ask for, whose networks beside OCR run on `runtime`; see `DocumentReader`."""
    runtime = runtime or Runtime()
    return DocumentReader(
        ocr,
        options.text_layer,
        options.tables,
        options.figures,
        images,
        options.dpi,
        options.page_num or 0,
        None if options.layout_model is None else open_layout(options.layout_model, runtime=runtime),
        None
        if options.table_model is None
        else lazy_table(options.table_model, runtime, options.cell_model, options.table_classification_model),
        lazy_ocr(options.seal_model, runtime) if options.seals else None,
        None if options.formula_model is None else lazy_formula(options.formula_model, runtime),
        default_layout(runtime),
        options.hidden,
        options.figure_text,
        options.bgr,
    )


def document(
    source: str | Path | ImageSource,
    *,
    config: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    images: bool = False,
    device: str | None = None,
    precision: str = "auto",
    engine: str = "auto",
    threads: int | None = None,
    overrides: Sequence[str] = (),
    trust: bool = False,
    **options: object,
) -> Document:
    """A PDF or an image as a document of headings, paragraphs, lists, tables and figures in reading order.

    import ocr

    found = ocr.document("paper.pdf", pages="1-3")
    print(found.to_markdown())
    for table in found.tables:
        print(table.to_html())

    Args:
        source: A path, bytes, an array [H, W, 3] or a PIL image.
        config: A configuration of documents: a name of configs/ocr/structure such as "PP-StructureV3", or a file. What
            this call says goes before it.
        model, device, precision, engine, threads, overrides, trust: Of `ocr.predictor`, for pages without a text layer.
        images: Whether pages keep their image, for drawing and searchable PDFs.
        options: Fields of `ocr.documents.options.DocumentOptions`.
            With `document_orientation` and `unwarp` scans are made upright and flat first; such pages are in pixels of
            that image, and `Page.angle` and `Page.unwarped` say what was done.

    Raises:
        InputError: the source cannot be read, or an option is out of range. ConfigError: there is no such option.
    """
    if config is not None:
        named = require_document_config(config)
        model = named.model if isinstance(model, DefaultName) else model
        overrides = (*named.overrides, *overrides)
        options = {**named.options, **{name: value for name, value in options.items() if value is not None}}
    chosen = make_options(DocumentOptions, options, "ocr.document")
    runtime = Runtime(device, precision, engine, threads, trust)
    ocr = lazy_ocr(model, runtime, overrides, chosen.ocr_options())
    finder = FieldFinder(model=open_field_model(chosen, runtime)) if chosen.wants_fields else None
    kept = images or (finder is not None and finder.reads_images)
    reader = make_reader(chosen, ocr, runtime, images=kept)
    found = []
    with reader.open(source, pages=chosen.pages, password=chosen.password) as opened:  # type: ignore[arg-type]
        for page in opened.read_all(chosen.workers):
            if finder is not None:
                finder.add(page)
            found.append(page if images else replace(page, image=None))
    fields = () if finder is None else finder.find()
    return Document(finish_document(found), opened.label, fields)


document.__signature__ = options_signature(DocumentOptions, document)  # type: ignore[attr-defined]
