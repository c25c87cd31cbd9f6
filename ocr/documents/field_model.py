"""Trained fields: a model of configs/ocr/kie, opened by name, gives the fields of pages beside the rules of
`fields`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from framework.core.errors import FormatError
from framework.export import Artifact
from framework.inference import Runtime
from framework.workflow import find_artifact
from framework.workflow.domain.domain import Model
from framework.workflow.runners.image_runner import load_transforms
from ocr.fields.field_decoding import label_names
from ocr.fields.field_stage import FieldOptions, FieldReader
from ocr.fields.form_stage import FormOptions, FormReader, FormStage
from ocr.fields.form_tokens import RELATION_LABELS
from ocr.results.blocks import Field
from ocr.results.pages import Page

PACKAGES = ("ocr", "zoo", "framework")


class FieldModel(Protocol):
    """What finds the fields of pages; FieldReader and FormReader are such."""

    @property
    def reads_images(self) -> bool:
        """Whether pages must have their image."""
        ...

    def __call__(self, page: Page) -> list[Field]:
        """The fields of a page."""
        ...


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
        overrides: Settings of the config of `model`, as `-o` of the commands.
        name_key: The name of a field whose key says this.

    Raises:
        InputError: no such model. HubError: its weights are neither here nor reachable.
        FormatError: it is of another domain, of another task, or `relations` cannot go with it.
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
    entities = _open_stage(artifact, runtime)
    if relations is None:
        return FormReader(entities, None, name_key)
    found = find_artifact(relations, (), "ocr", runtime).artifact
    if found.config.get("kind") != "re":
        raise FormatError(
            "this model finds no relations",
            where=str(relations),
            received=f"kind {found.config.get('kind')!r}",
            allowed="a model whose task is RelationExtraction",
        )
    if label_names(entities.tags) != RELATION_LABELS:
        raise FormatError(
            "relations are between questions and answers",
            where=str(model),
            received=f"a model of {', '.join(label_names(entities.tags)) or 'no labels'}",
            allowed=f"a model of the labels {', '.join(RELATION_LABELS)}",
            fix="train it on the classes of XFUND, or leave out the model of relations",
        )
    return FormReader(entities, _open_stage(found, runtime), name_key)


def _open_stage(artifact: Artifact, runtime: Runtime) -> FormStage:
    return FormStage(
        runtime.open(artifact),
        load_transforms(artifact, PACKAGES),
        artifact.setting("options", FormOptions),
        artifact.setting("labels", tuple[str, ...], ()),
    )
