"""Settings of OCR: which of them change programs and which a finished artifact takes, and what options choose."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framework.config import bind, from_plain, override
from framework.core.errors import ConfigError, HubError
from framework.core.types import JSON
from framework.export import Artifact
from framework.workflow.domain.domain import DefaultName, Model
from ocr.pages.stages import PageOrientationOptions, UnwarpOptions
from ocr.pipeline.options import DEFAULT_MODEL
from ocr.pipeline.text_pipeline import PipelineOptions
from ocr.text.language_codes import language_codes
from ocr.text.languages import DEFAULT, choose_recognizers, missing_letters
from ocr.text.stages import DetectOptions, OrientationOptions, RecognizeOptions

log = logging.getLogger("oar")
FALLBACK_MODEL = "oar_latin"  # whose weights are in this package
_FALLBACK_SYMBOLS = tuple(map(chr, range(32, 127)))
PAGE_STAGES = ("document_orientation", "unwarp")


def fallback_model(
    model: Model, settings: Sequence[str], options: Mapping[str, object], error: HubError
) -> str | None:
    """The pair of this package in place of the default model. Whoever names a model, changes its networks or asks
    for a language that the pair cannot write gets the error."""
    changed, after = split_settings(settings)
    if not isinstance(model, DefaultName) or changed or any("orientation" in one for one in after):
        return None
    lang = _languages(options)
    if lang is not None and any(missing_letters(code, _FALLBACK_SYMBOLS) for code in language_codes(lang)):
        return None
    log.warning(
        "%s is read with in place of %s: it knows English letters, digits and signs alone, and errs more often. "
        'For the official weights: pip install "oar-toolkit[ocr]", or `oar models pull` where there is a network. '
        "%s: %s: %s",
        *(FALLBACK_MODEL, model, error.where, error.problem),
        "; ".join(line.strip() for line in str(error.received).splitlines()),
    )
    return FALLBACK_MODEL


def choose_settings(config: Path, plain: Mapping[str, Any], options: Mapping[str, object]) -> Sequence[str]:
    """With `lang` the default model takes the recognisers that read it; a model that was changed is kept. Stages
    that prepare pages are exported where they are asked for."""
    pipeline = plain.get("pipeline") or {}
    stages = [
        f"pipeline.{name}.enabled=true"
        for name in PAGE_STAGES
        if options.get(name)
        and isinstance(block := pipeline.get(name), dict)
        and not block.get("enabled", True)
    ]
    return (*_choose_recognizers(config, pipeline, _languages(options)), *stages)


def _languages(options: Mapping[str, object]) -> str | Iterable[str] | None:
    lang = options.get("lang")
    if lang is None or isinstance(lang, str | Iterable):
        return lang
    raise ConfigError(
        "no language has such a name", where="lang", received=lang, allowed='such as "ru" or "ru,en"'
    )


def _choose_recognizers(
    config: Path, pipeline: Mapping[str, JSON], lang: str | Iterable[str] | None
) -> Sequence[str]:
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


def split_settings(settings: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options of a stage can be changed in a finished artifact, but for those that are part of its program."""
    after = tuple(setting for setting in settings if _at_run_time(setting))
    return tuple(setting for setting in settings if setting not in after), after


def apply_settings(artifact: Artifact, settings: Sequence[str]) -> Artifact:
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
                allowed="pipeline.options.…, " + ", ".join(f"pipeline.{name}.options.…" for name in stages),
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


def _at_run_time(setting: str) -> bool:
    """Whether a setting is an option that a finished artifact can be run with: all but what is part of the programs."""
    keys = setting.partition("=")[0].strip().split(".")
    return "options" in keys and not {"normalize", "height", "size_hw", "turn_all"} & set(keys)
