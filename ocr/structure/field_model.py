"""Trained fields: a model of configs/ocr/kie, opened by name, gives the fields of pages beside the rules of
`fields`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.core.errors import FormatError
from framework.export import Artifact
from framework.inference import Runtime
from framework.workflow import find_artifact
from framework.workflow.domain import Model
from framework.workflow.image_runner import load_transforms
from ocr.blocks import Field
from ocr.kie.field_stage import FieldOptions, FieldReader
from ocr.kie.form_stage import FormOptions, FormReader, FormStage
from ocr.results import Page

FieldModel = Callable[[Page], list[Field]]
"""A page -> its fields."""
PACKAGES = ("ocr", "zoo", "framework")


def open_fields(
    model: Model,
    relations: Model | None = None,
    *,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    name_key: Callable[[str], str] = str.casefold,
) -> FieldReader | FormReader:
    """The reader of fields of a trained model: a tagger of fields, or LayoutXLM's SER, with or without RE.

    Args:
        model: An artifact's folder (`oar export`), a config file with weights, or the name of one.
        relations: The same of a model of RE, which finds the keys of values; for models of SER alone.
        runtime: Device, precision, engine.
        overrides: Settings of the config, as `-o` of the commands.
        name_key: The name of a field whose key says this.

    Raises:
        InputError: no such model. HubError: its weights are neither here nor reachable.
        FormatError: it is of another domain, finds no fields, or reads images of pages.
    """
    runtime = runtime or Runtime()
    artifact = find_artifact(model, overrides, "ocr", runtime).artifact
    kind = artifact.config.get("kind")
    if kind == "fields" and relations is None:
        options = artifact.setting("options", FieldOptions)
        return FieldReader(runtime.open(artifact), options, artifact.setting("labels", tuple[str, ...]))
    if kind != "ser":
        raise FormatError(
            "this model finds no fields" if relations is None else "this model finds no kinds of lines",
            where=str(model),
            received=f"kind {kind!r}",
            allowed="a model whose task is FieldExtraction or SemanticEntityRecognition"
            if relations is None
            else "a model whose task is SemanticEntityRecognition, beside one of relations",
            fix="train one: oar train -c configs/ocr/kie/field_tagger.yml; then export it: oar export",
        )
    found = None
    if relations is not None:
        found = find_artifact(relations, (), "ocr", runtime).artifact
        if found.config.get("kind") != "re":
            raise FormatError(
                "this model finds no relations",
                where=str(relations),
                received=f"kind {found.config.get('kind')!r}",
                allowed="a model whose task is RelationExtraction",
            )
    stages = [None if one is None else _open_stage(one, runtime) for one in (artifact, found)]
    assert stages[0] is not None
    return FormReader(stages[0], stages[1], name_key)


def _open_stage(artifact: Artifact, runtime: Runtime) -> FormStage:
    options = artifact.setting("options", FormOptions)
    if options.use_image:
        raise FormatError(
            "this model reads the images of pages, which documents do not keep",
            where=str(artifact.source),
            received="task.use_image: true",
            allowed="a model without a visual branch, such as VI-LayoutXLM",
        )
    labels = artifact.setting("labels", tuple[str, ...], ())
    return FormStage(runtime.open(artifact), load_transforms(artifact, PACKAGES), options, labels)
