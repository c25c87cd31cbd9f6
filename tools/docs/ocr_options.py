"""The tables of docs/ocr_options.md: the options of `ocr.predictor`, and the settings of a pipeline's stages."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from operator import attrgetter
from typing import Any

from framework.config import load
from framework.engine.experiment import bind_experiment
from ocr.pages.stages import PageOrientationOptions, UnwarpOptions
from ocr.pipeline.options import OCROptions
from ocr.pipeline.text_pipeline import PipelineOptions
from ocr.text.postprocess import DBPostprocess
from ocr.text.preprocess import DetSize
from ocr.text.stages import DetectOptions, OrientationOptions, RecognizeOptions
from tools.docs.models import EMPTY, REPO, markdown

# What an option sets in the configuration of a pipeline, where its default is told.
SETTINGS = {
    "max_side": "detector.options.size.limit_side",
    "thresh": "detector.options.postprocess.thresh",
    "box_thresh": "detector.options.postprocess.box_thresh",
    "unclip_ratio": "detector.options.postprocess.unclip_ratio",
    "batch_size": "recognizer.options.batch",
    "drop_score": "options.drop_score",
    "orient": "options.orient",
    "document_orientation": "document_orientation.enabled",
    "unwarp": "unwarp.enabled",
}
STAGES = {
    "pipeline.options": PipelineOptions,
    "pipeline.detector.options": DetectOptions,
    "pipeline.detector.options.size": DetSize,
    "pipeline.detector.options.postprocess": DBPostprocess,
    "pipeline.recognizer.options": RecognizeOptions,
    "pipeline.orientation.options": OrientationOptions,
    "pipeline.document_orientation.options": PageOrientationOptions,
    "pipeline.unwarp.options": UnwarpOptions,
}


def options_table() -> str:
    """Every option of `ocr.predictor` that is OCR's own, with PaddleOCR's names for it and the default."""
    rows = []
    for field in dataclasses.fields(OCROptions):
        aliases = ", ".join(f"`{alias}`" for alias in field.metadata["aliases"])
        path = SETTINGS.get(field.name)
        default = EMPTY if path is None else f"`{_show(attrgetter(path)(_pipeline()))}`"
        rows.append((f"`{field.name}`", aliases or EMPTY, _cell(field.metadata["help"]), default))
    return markdown(("option", "also", "meaning", "default"), rows)


def settings_table() -> str:
    """Every setting of the stages of a pipeline, as `-o` takes it."""
    rows = []
    for path, config in STAGES.items():
        meanings = _attributes(config)
        for field in dataclasses.fields(config):
            value = getattr(attrgetter(path.removeprefix("pipeline."))(_pipeline()), field.name)
            if dataclasses.is_dataclass(
                value
            ):  # of nested settings each has a row, and of `normalize` the docstring
                continue
            meaning = _cell(meanings.get(field.name, EMPTY))
            rows.append((f"`{path}.{field.name}`", meaning, f"`{_show(value)}`"))
    return markdown(("setting", "meaning", "in `pp_ocrv6_small`"), rows)


@functools.cache
def _pipeline() -> Any:
    return bind_experiment(load(REPO / "configs" / "ocr" / "pp_ocrv6_small.yml")).pipeline


def _attributes(config: type) -> dict[str, str]:
    """{name: meaning} of the section `Attributes:` of a docstring."""
    text = inspect.getdoc(config) or ""
    section = re.search(r"^Attributes:\n((?: {4}.*\n?)+)", text, re.MULTILINE)
    meanings: dict[str, str] = {}
    for name, meaning in re.findall(
        r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE
    ):
        meanings[name] = " ".join(meaning.split())
    return meanings


def _show(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return f"[{', '.join(map(_show, value))}]"
    return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
