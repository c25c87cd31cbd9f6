"""OCR as a domain: artifacts of three stages, their options, and the predictor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from framework.core.errors import ConfigError, FormatError
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference import Runtime
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import SOURCE, read_asset
from framework.workflow import Domain
from framework.workflow.domain.capabilities import (
    FallbackModel,
    FixedSizes,
    OptionModel,
    ResultReader,
    RuntimeSettings,
    WebExport,
)
from framework.workflow.domain.comparison import ContentComparison, ResultComparison
from framework.workflow.open.predict import make_predictor_function
from ocr.exporters.files import SERVED_FORMATS
from ocr.formulas.stage import FormulaOptions, FormulaRecognizer
from ocr.paddlex_routes import ROUTES
from ocr.pages.preparation import PagePreparation
from ocr.pages.stages import PageOrientationClassifier, PageOrientationOptions, Unwarper, UnwarpOptions
from ocr.pipeline.fixed_sizes import choose_fixed_sizes
from ocr.pipeline.options import DEFAULT_MODEL, OCROptions
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.settings import (
    PAGE_STAGES,
    apply_settings,
    choose_settings,
    fallback_model,
    split_settings,
)
from ocr.pipeline.single_stage import (
    DetectedPages,
    FormulaPages,
    LineDirections,
    PageAngles,
    ReadLines,
    SingleStage,
    TablePages,
)
from ocr.pipeline.text_pipeline import OCRPipeline, PipelineOptions
from ocr.pipeline.web_page import describe_page
from ocr.results.comparison import compare_pages, compare_words
from ocr.results.pages import Page
from ocr.tables.stage import TableOptions, TableRecognizer
from ocr.tasks.contracts import DescribesStage
from ocr.text.characters import CharacterSet
from ocr.text.language_codes import language_codes
from ocr.text.stages import (
    DetectOptions,
    Detector,
    OrientationClassifier,
    OrientationOptions,
    RecognizeOptions,
    Recognizer,
    RecognizerGroup,
)

if TYPE_CHECKING:
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer

log = logging.getLogger("oar")
_FIELD_KINDS = (
    "fields",
    "ser",
    "re",
)  # of artifacts that document readers open (ocr/documents/field_model.py)


class OCRDomain(Domain[OCROptions]):
    """Text on images and pages."""

    name = "ocr"
    options = OCROptions
    suite = "paddleocr"
    program_modules = ("ocr.models", "ocr.layers", "ocr.tasks.text", "ocr.pipeline.config")
    capabilities = (
        OptionModel("lang", "LANGUAGE", "to recognise text", DEFAULT_MODEL),
        FallbackModel(fallback_model),
        RuntimeSettings(choose_settings, split_settings, apply_settings),
        FixedSizes(choose_fixed_sizes),
        ResultComparison("lines", 0.99, compare_pages),
        ContentComparison("words", compare_words),
        WebExport("lines", describe_page),
        SERVED_FORMATS,
        ResultReader(Page.from_dict),
        ROUTES,
    )

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from ocr.data.check import validate_any  # what runs artifacts loads no data sets

        return validate_any(dataset, observe)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        task = experiment.task
        loader = experiment.data.eval or experiment.data.train
        if not isinstance(task, DescribesStage):
            return {}
        return task.describe_stage(loader.buckets if loader is not None else None)

    def open(self, artifact: Artifact, options: OCROptions, runtime: Runtime) -> OCRPredictor:
        kind = str(artifact.config.get("kind"))
        if kind in _SINGLE and not artifact.stages:
            return OCRPredictor(
                _SINGLE[kind](artifact, options, runtime),
                str(artifact.config.get("name", "")),
                bgr=options.bgr,
            )
        if kind in _FIELD_KINDS:
            raise FormatError(
                "this model reads no images, but the lines of pages",
                received=f"kind {kind!r}",
                allowed="a model of text lines or of tables",
                fix="oar document FILE --fields_model FOLDER, or ocr.document(..., fields_model=...)",
            )
        missing = {"detector", "recognizer"} - set(artifact.stages)
        if missing:
            raise FormatError(
                "this artifact does not recognise text",
                received=f"stages: {', '.join(artifact.stages) or 'none'}",
                allowed="detector, recognizer and, if wanted, orientation, document_orientation, unwarp",
                fix="export it with `oar export` from a config of configs/ocr",
            )
        kept = artifact.setting("options", PipelineOptions, PipelineOptions())
        kept = replace(kept, **_given(options, "drop_score", "orient", "look_closer"))
        names = sorted(name for name in artifact.stages if name.startswith("recognizer"))
        recognizers = [_open_recognizer(artifact.stages[name], options, runtime) for name in names]
        if options.lang is not None:
            for code in language_codes(options.lang):
                if not any(recognizer.characters.can_write(code) for recognizer in recognizers):
                    recognizers[0].characters.check_language(code)
        elif lang := artifact.config.get("lang"):
            rows = [artifact.stages[name].config.get("name") for name in names]
            log.info("%s recognises text, for pipeline.lang: %s", " and ".join(map(str, rows)), lang)
        recognizer = recognizers[0] if len(recognizers) == 1 else RecognizerGroup(recognizers)
        detector = _open_detector(artifact.stages["detector"], options, runtime)
        orientation, stage = None, artifact.stages.get("orientation")
        if stage is not None and kept.orient:
            orientation = _open_orientation(stage, options, runtime)
        pipeline = OCRPipeline(
            detector, recognizer, orientation, kept, _open_preparation(artifact, options, runtime)
        )
        return OCRPredictor(pipeline, str(artifact.config.get("name", "")), bgr=options.bgr)


def _given(options: OCROptions, *names: str) -> dict[str, JSON]:
    """Those of the options that are set."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _open_detector(stage: Artifact, options: OCROptions, runtime: Runtime) -> Detector:
    how = stage.setting("options", DetectOptions)
    if options.max_side is not None:
        size = replace(how.size, limit_side=options.max_side, limit_type="max")
        how = replace(how, size=size, sides=_bucket_sides(options.max_side))
    given = _given(options, "thresh", "box_thresh", "unclip_ratio")
    return Detector(runtime.open(stage), replace(how, postprocess=replace(how.postprocess, **given)))


def _open_recognizer(stage: Artifact, options: OCROptions, runtime: Runtime) -> Recognizer:
    how = stage.setting("options", RecognizeOptions)
    if options.batch_size is not None:
        how = replace(how, batch=options.batch_size)
    characters = CharacterSet.from_symbols(
        stage.setting("characters", tuple[str, ...]),
        use_space_char=stage.setting("space", bool),
        right_to_left=stage.setting("right_to_left", bool),
        source=stage.source,
    )
    model = stage.config.get("model")
    if isinstance(model, dict) and isinstance(classes := model.get("num_classes"), int):
        characters.check_head(classes, "the program")
    return Recognizer(runtime.open(stage), how, characters)


def _open_orientation(stage: Artifact, options: OCROptions, runtime: Runtime) -> OrientationClassifier:
    return OrientationClassifier(runtime.open(stage), stage.setting("options", OrientationOptions))


def _open_table(stage: Artifact, options: OCROptions, runtime: Runtime) -> TableRecognizer:
    return TableRecognizer(runtime.open(stage), stage.setting("options", TableOptions))


def _open_formula(stage: Artifact, options: OCROptions, runtime: Runtime) -> FormulaRecognizer:
    tokenizer = Tokenizer.from_json(read_asset(stage.files, SOURCE), stage.source)
    return FormulaRecognizer(runtime.open(stage), stage.setting("options", FormulaOptions), tokenizer)


def _open_page_orientation(
    stage: Artifact, options: OCROptions, runtime: Runtime
) -> PageOrientationClassifier:
    return PageOrientationClassifier(runtime.open(stage), stage.setting("options", PageOrientationOptions))


def _open_preparation(artifact: Artifact, options: OCROptions, runtime: Runtime) -> PagePreparation | None:
    """The stages that prepare pages, but those that are switched off; None without any.

    Raises:
        ConfigError: one is asked for that the artifact does not have.
    """
    wanted = {name: artifact.stages.get(name) for name in PAGE_STAGES if getattr(options, name) is not False}
    for name, stage in wanted.items():
        if getattr(options, name) and stage is None:
            raise ConfigError(
                "this model has no such stage",
                where=name,
                received=f"stages: {', '.join(artifact.stages)}",
                fix=f"export it again with -o pipeline.{name}.enabled=true, or open a configuration of configs/ocr",
            )
    orientation, unwarp = (wanted.get(name) for name in PAGE_STAGES)
    if orientation is None and unwarp is None:
        return None
    return PagePreparation(
        None if orientation is None else _open_page_orientation(orientation, options, runtime),
        None if unwarp is None else Unwarper(runtime.open(unwarp), unwarp.setting("options", UnwarpOptions)),
    )


def _open_line_reader(stage: Artifact, options: OCROptions, runtime: Runtime) -> Recognizer:
    """Raises: InputError, where a language is asked for that it cannot write."""
    recognizer = _open_recognizer(stage, options, runtime)
    for code in () if options.lang is None else language_codes(options.lang):
        recognizer.characters.check_language(code)
    return recognizer


# What an artifact of one model gives, by its kind.
_SINGLE: dict[str, Callable[[Artifact, OCROptions, Runtime], SingleStage]] = {
    "detector": lambda *given: DetectedPages(_open_detector(*given)),
    "recognizer": lambda *given: ReadLines(_open_line_reader(*given)),
    "orientation": lambda *given: LineDirections(_open_orientation(*given)),
    "table": lambda *given: TablePages(_open_table(*given)),
    "formula": lambda *given: FormulaPages(_open_formula(*given)),
    "document_orientation": lambda *given: PageAngles(_open_page_orientation(*given)),
}


def _bucket_sides(longest: int) -> tuple[int, ...]:
    """Five bucket sides up to `longest`, multiples of 32."""
    return tuple(sorted({max(32, round(longest * k / 5 / 32) * 32) for k in range(1, 6)}))


DOMAIN = OCRDomain()
predictor = make_predictor_function(DOMAIN.name, OCROptions, OCRPredictor, default=DEFAULT_MODEL)
