"""Trained fields: a model of configs/ocr/kie, opened by name, gives the fields of pages beside the rules of
`fields`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.core.errors import FormatError
from framework.inference import Runtime
from framework.workflow import find_artifact
from framework.workflow.domain import Model
from ocr.blocks import Field
from ocr.kie.field_stage import FieldOptions, FieldReader
from ocr.lines import Line

FieldModel = Callable[[Sequence[Line], int], list[Field]]
"""(lines of a page, its number) -> its fields, each name once."""


def open_fields(
    model: Model, *, runtime: Runtime | None = None, overrides: Sequence[str] = ()
) -> FieldReader:
    """The reader of fields of a trained model.

    Args:
        model: An artifact's folder (`oar export`), a config file with weights, or the name of one.
        runtime: Device, precision, engine.
        overrides: Settings of the config, as `-o` of the commands.

    Raises:
        InputError: no such model. HubError: its weights are neither here nor reachable.
        FormatError: it is of another domain, or finds no fields.
    """
    runtime = runtime or Runtime()
    artifact = find_artifact(model, overrides, "ocr", runtime).artifact
    if artifact.config.get("kind") != "fields":
        raise FormatError(
            "this model finds no fields",
            where=str(model),
            received=f"kind {artifact.config.get('kind')!r}",
            allowed="a model whose task is FieldExtraction",
            fix="train one: oar train -c configs/ocr/kie/field_tagger.yml; then export it: oar export",
        )
    options = artifact.setting("options", FieldOptions)
    return FieldReader(runtime.open(artifact), options, artifact.setting("labels", tuple[str, ...]))
