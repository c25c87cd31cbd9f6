"""OCR as a domain: artifacts of three stages, their options, and the predictor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.config import bind, from_plain, override
from framework.core.errors import ConfigError, FormatError, HubError, InputError
from framework.core.languages import language_codes
from framework.export import Artifact
from framework.inference import Runtime
from framework.workflow import Domain, option
from framework.workflow.domain import DefaultName, Model
from framework.workflow.options import check_range
from framework.workflow.predict import make_predictor_function
from ocr.characters import CharacterSet
from ocr.languages import DEFAULT, choose_recognizers, missing_letters
from ocr.ocr_predictor import OCRPredictor
from ocr.pipeline import OCRPipeline, PipelineOptions
from ocr.single_stage import DetectedPages, LineDirections, ReadLines, SingleStage
from ocr.stages import (
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
DEFAULT_MODEL = DefaultName("pp_ocrv6_small")
FALLBACK_MODEL = "oar_latin"  # whose weights are in this package
_FALLBACK_SYMBOLS = tuple(map(chr, range(32, 127)))


@dataclass(frozen=True)
class OCROptions:
    """Options of `ocr.predictor`; None leaves what the model's config says. Raises: InputError, where one is wrong."""

    lang: str | Sequence[str] | None = option(
        None,
        'a language ("de", "ru", "arabic", …) or several ("ru,en"): picks the recogniser that reads it; '
        "of a model that is named, checks that it has the letters",
    )
    max_side: int | None = option(
        None,
        "longest side, in pixels, at which the detector sees an image",
        aliases=("det_limit_side_len", "text_det_limit_side_len"),
    )
    thresh: float | None = option(
        None,
        "probability from which a pixel is text, 0 to 1",
        aliases=("det_db_thresh", "text_det_thresh"),
    )
    box_thresh: float | None = option(
        None, "least mean probability of a box, 0 to 1", aliases=("det_db_box_thresh", "text_det_box_thresh")
    )
    unclip_ratio: float | None = option(
        None, "how far boxes are grown", aliases=("det_db_unclip_ratio", "text_det_unclip_ratio")
    )
    batch_size: int | None = option(None, "how many lines run together", aliases=("rec_batch_num",))
    drop_score: float | None = option(
        None,
        "lines below this mean probability are dropped, 0 to 1",
        aliases=("threshold", "text_rec_score_thresh"),
    )
    orient: bool | None = option(
        None,
        "whether lines on their heads are turned",
        aliases=("use_angle_cls", "use_textline_orientation"),
    )

    def __post_init__(self) -> None:
        if self.lang is not None:
            language_codes(self.lang)
        for name in ("thresh", "box_thresh", "drop_score"):
            check_range(getattr(self, name), name, 0, 1)
        for name in ("max_side", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is too small", where=name, received=value, allowed="1 or more")


class OCRDomain(Domain[OCROptions]):
    """Text on images and pages."""

    name = "ocr"
    options = OCROptions

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
        missing = {"detector", "recognizer"} - set(artifact.stages)
        if missing:
            raise FormatError(
                "this artifact does not recognise text",
                received=f"stages: {', '.join(artifact.stages) or 'none'}",
                allowed="detector, recognizer and, if wanted, orientation",
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
        pipeline = OCRPipeline(detector, recognizer, orientation, kept)
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
        """With `lang` the default model takes the recognisers that read it; a model that was changed is kept."""
        pipeline, lang = plain.get("pipeline") or {}, options.get("lang")
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
        kinds = {"detector": DetectOptions, "orientation": OrientationOptions}
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
}


def _bucket_sides(longest: int) -> tuple[int, ...]:
    """Five bucket sides up to `longest`, multiples of 32."""
    return tuple(sorted({max(32, round(longest * k / 5 / 32) * 32) for k in range(1, 6)}))


def _at_run_time(setting: str) -> bool:
    """Whether a setting is an option that a finished artifact can be run with: all but what is part of the programs."""
    keys = setting.partition("=")[0].strip().split(".")
    return "options" in keys and not {"normalize", "height", "size_hw"} & set(keys)


DOMAIN = OCRDomain()
predictor = make_predictor_function(DOMAIN.name, OCROptions, OCRPredictor, default=DEFAULT_MODEL)
