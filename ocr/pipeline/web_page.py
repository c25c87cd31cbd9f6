"""What a page in a browser needs to read text: the options of the stages, and the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.export import Artifact
from ocr.pipeline.text_pipeline import PipelineOptions
from ocr.text.characters import CharacterSet
from ocr.text.stages import DetectOptions, OrientationOptions, RecognizeOptions

_STAGES = ("detector", "recognizer", "orientation")


def describe_page(artifact: Artifact) -> Mapping[str, JSON]:
    """Raises: ConfigError, of models of single stages, of pages made flat, of curved text, of several recognisers, of
    scripts written from right to left, and of recognisers of words of one size."""
    stages, where = artifact.stages, artifact.source
    if not {"detector", "recognizer"} <= stages.keys():
        raise ConfigError(
            "the page finds and recognises text",
            where=where,
            received=f"stages: {', '.join(stages) or 'none'}",
            allowed="an artifact with a detector and a recognizer",
        )
    if others := [name for name in stages if name not in _STAGES]:
        raise ConfigError(
            "the page does not have these stages",
            where=where,
            received=", ".join(others),
            allowed=", ".join(_STAGES),
            fix="one language, and no document_orientation or unwarp",
        )
    detect = stages["detector"].setting("options", DetectOptions)
    recognize = stages["recognizer"].setting("options", RecognizeOptions)
    reader = stages["recognizer"]
    characters = CharacterSet.from_symbols(
        reader.setting("characters", tuple[str, ...]),
        use_space_char=reader.setting("space", bool),
        right_to_left=reader.setting("right_to_left", bool),
        source=reader.source,
    )
    options = artifact.setting("options", PipelineOptions, PipelineOptions())
    refused = {
        "outlines of curved text (box_type: poly)": detect.postprocess.box_type != "quad",
        "a recogniser of words of one size": recognize.stretch or len(recognize.widths) < 2,
        "a script written from right to left": characters.right_to_left,
    }
    if reasons := [reason for reason, holds in refused.items() if holds]:
        raise ConfigError("the page cannot read this", where=where, received=", ".join(reasons))
    turns = stages.get("orientation") if options.orient else None
    return {
        "detector": {
            "size": asdict(detect.size),
            "postprocess": asdict(detect.postprocess),
            "max_aspect": detect.max_aspect,
        },
        "recognizer": {
            "height": recognize.height,
            "widths": list(recognize.widths),
            "columns": recognize.columns,
            "batch": recognize.batch,
            "width_scale": recognize.width_scale,
            "symbols": list(characters.symbols),
        },
        "orientation": None if turns is None else _describe_orientation(turns),
        "options": {"drop_score": options.drop_score, "rotate_ratio": options.rotate_ratio},
    }


def _describe_orientation(stage: Artifact) -> JSON:
    options = stage.setting("options", OrientationOptions)
    return {"size_hw": list(options.size_hw), "thresh": options.thresh, "batch": options.batch}
