"""What a server answers on the routes of PaddleX's pipelines of texts and documents.

Source: PaddleX 3.x, inference/serving/schemas/ocr.py, layout_parsing.py, pp_structurev3.py, table_recognition.py,
seal_recognition.py and formula_recognition.py, whose paths and keys are public interface; results have the keys of the
pipelines' `json`, without `input_path` and `page_index`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from framework.core.disk import scratch_folder
from framework.core.errors import InputError
from framework.core.types import JSON
from framework.export import Artifact
from framework.vision import image as vision_image
from framework.workflow.domain.options import make_options
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute, PaddleXRoutes, WriteResult
from framework.workflow.domain.predictor import AnyPredictor
from framework.workflow.domain.result import Result
from ocr.documents.lazy import Lazy
from ocr.documents.options import DocumentOptions
from ocr.exporters.docx import write_docx
from ocr.exporters.markdown import to_markdown
from ocr.exporters.paddle import page_to_predict_dict
from ocr.exporters.paddle_structure import page_to_paddle
from ocr.paddlex_preprocessing import ROUTE as PREPROCESSING
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.blocks import Block, Figure
from ocr.results.pages import Document, Page

_NOT_OF_A_REQUEST = ("input_path", "page_index")
_WORDS = ("text_word", "text_word_boxes")


def _reads_text(artifact: Artifact) -> bool:
    return {"detector", "recognizer"} <= set(artifact.stages)


def _reads_formulas(artifact: Artifact) -> bool:
    return artifact.config.get("kind") == "formula"


def _prune(value: object) -> JSON:
    """The same without what tells where the server's file was, with arrays as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _prune(item) for key, item in value.items() if key not in _NOT_OF_A_REQUEST}
    if isinstance(value, list | tuple):
        return [_prune(item) for item in value]
    return cast(JSON, value)


def _write_text(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    entries = []
    for page in cast("Sequence[Page]", results):
        content = dict(page_to_predict_dict(page))
        content["return_word_box"] = fields.get("returnWordBox") is True
        if not content["return_word_box"]:
            content = {key: value for key, value in content.items() if key not in _WORDS}
        entry: dict[str, JSON] = {"prunedResult": _prune(content)}
        if encode is not None:
            entry |= {"ocrImage": encode(page.draw()), "inputImage": encode(page.pixels)}
        entries.append(entry)
    return {"ocrResults": entries}


def _write_layout(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    """`isStart` and `isEnd` say whether the first and the last paragraph of a page are whole, `images` has those of
    figures by the paths that the text names them with; `outputFormats: ["docx"]` asks for a Word file of each page."""
    pages = cast("Sequence[Page]", results)
    with_images = fields.get("returnMarkdownImages") is not False
    formats = _output_formats(fields.get("outputFormats"))
    starts = [not (page.blocks and page.blocks[0].continued) for page in pages]
    entries = []
    for page, start, end in zip(pages, starts, [*starts[1:], True]):
        entry = _structure_entry(page, page_to_paddle(page, len(pages)), encode)
        images: dict[str, JSON] = {}
        blocks = tuple(_name_figures(block, images) for block in page.blocks)
        text = to_markdown(Document((replace(page, blocks=blocks),), page.source))
        markdown: dict[str, JSON] = {"text": text, "isStart": start, "isEnd": end}
        entry["markdown"] = {**markdown, **({"images": images} if with_images else {})}
        if formats:
            entry["exports"] = {"docx": _word_file(page)}
        entries.append(entry)
    return {"layoutParsingResults": entries}


def _output_formats(value: JSON) -> list[str]:
    """Raises: InputError, where there is no such format."""
    formats = [] if value is None else value
    if not isinstance(formats, list) or any(one != "docx" for one in formats):
        raise InputError(
            "there is no such format of a document",
            where="outputFormats",
            received=repr(value)[:100],
            allowed='["docx"]',
        )
    return cast("list[str]", formats)


def _word_file(page: Page) -> Mapping[str, JSON]:
    with scratch_folder("oar-") as folder:
        path = folder / "page.docx"
        write_docx(Document((page,), page.source), path)
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    return {"content": content, "fileName": f"page_{page.page}.docx"}


def _name_figures(block: Block, images: dict[str, JSON]) -> Block:
    """The block with figures that have a path, as PaddleX names them; their JPEG in base64 goes into `images`."""
    content = block.content
    if isinstance(content, Figure) and content.image is not None and content.image.size:
        corners = "_".join(str(round(value)) for value in block.bbox)
        data = vision_image.encode(content.image, ".jpg")
        content = replace(content, path=f"imgs/img_in_{block.label}_box_{corners}.jpg")
        images[content.path] = base64.b64encode(data).decode("ascii")
    children = tuple(_name_figures(child, images) for child in block.children)
    return replace(block, content=content, children=children)


def _structure_entry(
    page: Page, content: Mapping[str, object], encode: EncodeImage | None
) -> dict[str, JSON]:
    entry: dict[str, JSON] = {"prunedResult": _prune(content)}
    if encode is not None:
        entry["outputImages"] = {"layout_det_res": encode(page.draw(side_by_side=False))}
        entry["inputImage"] = encode(page.pixels)
    return entry


def _structure_writer(name: str, keys: Sequence[str]) -> WriteResult:
    """Answers with some keys of PP-StructureV3's result."""

    def write(
        results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
    ) -> Mapping[str, JSON]:
        entries = []
        for page in cast("Sequence[Page]", results):
            content = page_to_paddle(page, len(results))
            entries.append(_structure_entry(page, {key: content[key] for key in keys}, encode))
        return {name: entries}

    return write


def _document_reader(
    change: Callable[[DocumentOptions], DocumentOptions] = lambda options: options,
) -> Callable[[AnyPredictor, bytes, Mapping[str, object]], Sequence[Result]]:
    def read(predictor: AnyPredictor, data: bytes, options: Mapping[str, object]) -> Sequence[Result]:
        from ocr.documents.document import make_reader  # loads jax, which engines of ONNX files do without

        settings = change(make_options(DocumentOptions, options, "the document"))
        text_reader = cast(OCRPredictor, predictor)
        return make_reader(settings, Lazy(lambda: text_reader), images=True)(data).pages

    return read


_STRUCTURE = ("model_settings", "layout_det_res", "overall_ocr_res")
_TABLES = _document_reader(lambda options: replace(options, tables=True))
_SEALS = _document_reader(lambda options: replace(options, seals=True))
_DOCUMENT_FIELDS = {"useTableRecognition": "tables", "useSealRecognition": "seals"}
ROUTES = PaddleXRoutes(
    (
        PaddleXRoute("/ocr", "file", _reads_text, _write_text, other_fields=("returnWordBox",)),
        PaddleXRoute(
            "/layout-parsing",
            "file",
            _reads_text,
            _write_layout,
            _DOCUMENT_FIELDS,
            _document_reader(),
            DocumentOptions,
            ("returnMarkdownImages", "outputFormats"),
        ),
        PaddleXRoute(
            "/table-recognition",
            "file",
            _reads_text,
            _structure_writer("tableRecResults", (*_STRUCTURE, "table_res_list")),
            read=_TABLES,
            options=DocumentOptions,
        ),
        PaddleXRoute(
            "/seal-recognition",
            "file",
            _reads_text,
            _structure_writer("sealRecResults", (*_STRUCTURE[:2], "seal_res_list")),
            read=_SEALS,
            options=DocumentOptions,
        ),
        PaddleXRoute(
            "/formula-recognition",
            "file",
            _reads_formulas,
            _structure_writer("formulaRecResults", (*_STRUCTURE[:2], "formula_res_list")),
        ),
        PREPROCESSING,
    )
)
