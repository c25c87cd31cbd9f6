"""OCR as a domain: artifacts of three stages, their options, and the predictor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.config import bind, from_plain, override
from framework.core.errors import ConfigError, FormatError, HubError
from framework.core.languages import language_codes
from framework.export import Artifact
from framework.inference import Runtime
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import SOURCE, read_asset
from framework.workflow import Domain
from framework.workflow.domain.domain import DefaultName
from framework.workflow.open.predict import make_predictor_function, open_predictor
from ocr.documents.options import DocumentOptions
from ocr.formulas.stage import FormulaOptions, FormulaRecognizer
from ocr.pages.preparation import PagePreparation
from ocr.pages.stages import PageOrientationClassifier, PageOrientationOptions, Unwarper, UnwarpOptions
from ocr.pipeline.options import DEFAULT_MODEL, OCROptions
from ocr.pipeline.predictor import OCRPredictor
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
from ocr.tables.stage import TableOptions, TableRecognizer
from ocr.text.characters import CharacterSet
from ocr.text.languages import DEFAULT, choose_recognizers, missing_letters
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
    from framework.workflow.data.lines import LineOptions
    from framework.workflow.domain.domain import Model
    from framework.workflow.domain.outputs import Report
    from framework.workflow.files.documents import DocumentConverter

log = logging.getLogger("oar")
FALLBACK_MODEL = "oar_latin"  # whose weights are in this package
_FALLBACK_SYMBOLS = tuple(map(chr, range(32, 127)))
_FIELD_KINDS = (
    "fields",
    "ser",
    "re",
)  # of artifacts that document readers open (ocr/documents/field_model.py)
_PAGE_STAGES = ("document_orientation", "unwarp")


class OCRDomain(Domain[OCROptions]):
    """Text on images and pages."""

    name = "ocr"
    options = OCROptions
    document_options = DocumentOptions

    def open_documents(
        self,
        model: Model | None,
        options: DocumentOptions,
        runtime: Runtime,
        overrides: Sequence[str] = (),
    ) -> DocumentConverter:
        from ocr.documents.convert import open_converter  # what reads text lines alone needs none of it

        return open_converter(model or DEFAULT_MODEL, options, runtime, overrides)

    def read_document_config(
        self, config: Model, settings: Sequence[str] = ()
    ) -> tuple[Model, Sequence[str], Mapping[str, Any]] | None:
        from ocr.documents.config import read_document_config

        return read_document_config(config, settings)

    def score_documents(self, truth: Path, folder: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
        from ocr.documents.evaluation.scores import score_documents

        return score_documents(truth, folder)

    def write_lines(
        self,
        source: Path,
        output: Path,
        options: LineOptions,
        model: Model | None,
        runtime: Runtime,
        overrides: Sequence[str] = (),
    ) -> Report:
        from ocr.pipeline.line_files import write_lines  # it reads labels of training data

        def open_model() -> OCRPredictor:
            given = {"drop_score": 0.0}
            return open_predictor(  # type: ignore[return-value]
                model or DEFAULT_MODEL, domain=self.name, runtime=runtime, overrides=overrides, options=given
            )

        return write_lines(source, output, options, open_model)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, Any]:
        task: Any = experiment.task
        loader = experiment.data.eval or experiment.data.train
        return task.describe_stage(loader.buckets if loader is not None else None)

    def open(self, artifact: Artifact, options: OCROptions, runtime: Runtime) -> OCRPredictor:
        kind = artifact.config.get("kind")
        if kind in _SINGLE and not artifact.stages:
            return OCRPredictor(
                _SINGLE[kind](artifact, options, runtime), str(artifact.config.get("name", ""))
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
        kept = replace(kept, **_given(options, "drop_score", "orient"))
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
        return OCRPredictor(pipeline, str(artifact.config.get("name", "")))

    def default_model(self, options: Mapping[str, Any]) -> str | None:
        return DEFAULT_MODEL if options.get("lang") else None

    def fallback_model(
        self, model: Model, settings: Sequence[str], options: Mapping[str, Any], error: HubError
    ) -> str | None:
        """The pair of this package in place of the default model. Whoever names a model, changes its networks or asks
        for a language that the pair cannot write gets the error."""
        changed, after = self.split_settings(settings)
        if not isinstance(model, DefaultName) or changed or any("orientation" in one for one in after):
            return None
        lang = options.get("lang")
        if lang is not None and any(
            missing_letters(code, _FALLBACK_SYMBOLS) for code in language_codes(lang)
        ):
            return None
        log.warning(
            "%s is read with in place of %s: it knows English letters, digits and signs alone, and errs more often. "
            'For the official weights: pip install "oar-toolkit[ocr]", or `oar models pull` where there is a network. '
            "%s: %s: %s",
            *(FALLBACK_MODEL, model, error.where, error.problem),
            "; ".join(line.strip() for line in str(error.received).splitlines()),
        )
        return FALLBACK_MODEL

    def choose_settings(
        self, config: Path, plain: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """With `lang` the default model takes the recognisers that read it; a model that was changed is kept. Stages
        that prepare pages are exported where they are asked for."""
        pipeline = plain.get("pipeline") or {}
        stages = [
            f"pipeline.{name}.enabled=true"
            for name in _PAGE_STAGES
            if options.get(name)
            and isinstance(block := pipeline.get(name), dict)
            and not block.get("enabled", True)
        ]
        return (*self._choose_recognizers(config, pipeline, options.get("lang")), *stages)

    def _choose_recognizers(self, config: Path, pipeline: Mapping[str, Any], lang: Any) -> Sequence[str]:
        changed = pipeline.get("lang") or pipeline.get("recognizers")
        stage = pipeline.get("recognizer")
        unchanged = not changed and isinstance(stage, dict) and stage.get("weights") == DEFAULT
        if not lang or config.stem != DEFAULT_MODEL or not unchanged:
            return ()
        choice = choose_recognizers(lang)
        log.info("%s", choice.reason)
        if choice.recognizers == (DEFAULT,):
            return ()
        return (f"pipeline.recognizers=[{', '.join(choice.recognizers)}]",)

    def split_settings(self, settings: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Options of a stage can be changed in a finished artifact, but for those that are part of its program."""
        after = tuple(setting for setting in settings if _at_run_time(setting))
        return tuple(setting for setting in settings if setting not in after), after

    def apply_settings(self, artifact: Artifact, settings: Sequence[str]) -> Artifact:
        """An artifact whose options are changed by settings such as pipeline.detector.options.size.limit_side=640."""
        if not settings:
            return artifact
        stages = {name: stage.config.get("options", {}) for name, stage in artifact.stages.items()}
        tree = {"pipeline": {n: {"options": o} for n, o in stages.items()}}
        tree["pipeline"]["options"] = artifact.config.get("options", {})
        merged = from_plain(tree)
        for setting in _for_every_recognizer(settings, artifact.stages):
            first, *below = setting.partition("=")[0].strip().split(".")
            if first != "pipeline" or below[0] not in tree["pipeline"] or "options" not in below[:2]:
                raise ConfigError(
                    "the pipeline has no such option",
                    where=f"-o {setting}",
                    received=".".join((first, *below)),
                    allowed="pipeline.options.…, "
                    + ", ".join(f"pipeline.{name}.options.…" for name in stages),
                )
            merged = override(merged, setting)
        kinds = {
            "detector": DetectOptions,
            "orientation": OrientationOptions,
            "document_orientation": PageOrientationOptions,
            "unwarp": UnwarpOptions,
        }
        nodes = merged.value["pipeline"].value
        bind(nodes["options"], PipelineOptions)  # here, as the nodes still know which -o they are from
        for name in stages:
            bind(nodes[name].value["options"], kinds.get(name, RecognizeOptions))
        data = merged.plain()["pipeline"]
        artifact.config["options"] = data["options"]
        for name, stage in artifact.stages.items():
            stage.config["options"] = data[name]["options"]
        return artifact


def _for_every_recognizer(settings: Sequence[str], stages: Mapping[str, Artifact]) -> list[str]:
    """Settings with those of pipeline.recognizer also for the recognisers beside it."""
    start, others = "pipeline.recognizer.", [name for name in stages if name.startswith("recognizer")]
    found = []
    for setting in map(str.strip, settings):
        names = sorted(others) if setting.startswith(start) else []
        found += [f"pipeline.{name}.{setting.removeprefix(start)}" for name in names] or [setting]
    return found


def _given(options: OCROptions, *names: str) -> dict[str, Any]:
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
    wanted = {name: artifact.stages.get(name) for name in _PAGE_STAGES if getattr(options, name) is not False}
    for name, stage in wanted.items():
        if getattr(options, name) and stage is None:
            raise ConfigError(
                "this model has no such stage",
                where=name,
                received=f"stages: {', '.join(artifact.stages)}",
                fix=f"export it again with -o pipeline.{name}.enabled=true, or open a configuration of configs/ocr",
            )
    orientation, unwarp = (wanted.get(name) for name in _PAGE_STAGES)
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
_SINGLE: dict[Any, Callable[[Artifact, OCROptions, Runtime], SingleStage]] = {
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


def _at_run_time(setting: str) -> bool:
    """Whether a setting is an option that a finished artifact can be run with: all but what is part of the programs."""
    keys = setting.partition("=")[0].strip().split(".")
    return "options" in keys and not {"normalize", "height", "size_hw", "turn_all"} & set(keys)


DOMAIN = OCRDomain()
predictor = make_predictor_function(DOMAIN.name, OCROptions, OCRPredictor, default=DEFAULT_MODEL)
