"""Every variant of every registered model and backbone of images but detectors, from the registry.

What a domain's models take and give is said by its function below, and what one of them differs in by its `contract`
(zoo/contracts.py): an architecture is no row here.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from framework import nn
from framework.config import available, build
from framework.config.registry import Entry, find
from zoo.contracts import Contract

PACKAGES = ("ocr", "segmentation", "zoo.classification", "zoo", "framework")
WITH_DETECTORS = ("ocr", "detection", "segmentation", "zoo", "framework")
Shape = tuple[int, ...]
Shapes = Callable[[nn.Layer, int, int, int], "list[Shape] | None"]
CLASSES = 11
OF_TEXTS = ("zoo.text", "zoo.decoder")
# Backbones from before the contract of zoo/contracts.py; the models of their domain cover them. The list only shrinks.
WITHOUT_FEATURES: set[str] = set()


@dataclass(frozen=True)
class Case:
    """One variant.

    Attributes:
        full: The config at its published size; it is never computed.
        small: A config of the same structure that is compiled; None where another case compiles that structure.
        image: A tiny input [N, H, W, 3]. `other` is a second size of the exported program.
        symbolic: The input of the exported program, and `constraints` on its sizes.
        shapes: The outputs for (layer, N, H, W) in the layer's mode; None says that no shape is promised.
        slow: The compiled checks run under the marker `slow`.
        bfloat16: Root mean square of what bfloat16 dots change, relative to the deviation of the outputs.
        flat: Opt-out of the gradient test: a regular expression of the parameters whose gradient is 0, and of the
            statistics that stay, by construction; and why. Both ways are checked.
    """

    kind: str
    name: str
    variant: str
    full: Any
    small: Any | None
    shapes: Shapes
    image: Shape = (2, 64, 96, 3)
    other: Shape = (1, 96, 64, 3)
    symbolic: tuple[int | str, ...] = ("n", "32*h", "32*w", 3)
    slow: bool = False
    bfloat16: float = 0.05
    flat: tuple[str, str] | None = None
    constraints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.variant}" if self.variant else self.name

    def build(self, deploy: bool = False, full: bool = False) -> nn.Layer:
        """The model, or with `deploy` its deploy form: the model itself where it has one form only."""
        config = self.full if full else self.small
        if hasattr(config, "deploy"):
            return build(dataclasses.replace(config, deploy=deploy))
        return build(config, deploy=deploy) if self.two_forms else build(config)

    @property
    def two_forms(self) -> bool:
        layer = find(self.kind, self.name, WITH_DETECTORS).layer
        assert layer is not None
        return hasattr(self.full, "deploy") or "deploy" in inspect.signature(layer.__init__).parameters


def variants_of(entry: Entry) -> dict[str, Any]:
    """The rows of the config's or the module's size table; one without a name where there is none."""
    own = getattr(entry.config, "variants", None)
    return dict(own) if own else getattr(sys.modules[entry.module], "VARIANTS", {"": None})


def sized(entry: Entry, variant: str, **fields: Any) -> Any:
    """The config of a variant, with those of `fields` that it has."""
    assert dataclasses.is_dataclass(entry.config)
    known = {field.name for field in dataclasses.fields(entry.config)}
    own = {"variant": variant, **fields} if variant else fields
    return entry.config(**{name: value for name, value in own.items() if name in known})


def contract_of(entry: Entry) -> Contract:
    return getattr(entry.layer, "contract", None) or Contract()


def said(contract: Contract) -> dict[str, Any]:
    """What a contract says: those of its attributes that differ from one that says nothing."""
    base = type(contract)()
    return {
        field.name: value
        for field in dataclasses.fields(base)
        if (value := getattr(contract, field.name)) != getattr(base, field.name)
    }


def smallest(entry: Entry) -> Any:
    """What is compiled: `small` of the contract, else the row of the fewest parameters, or the first."""
    small, variants = dict(contract_of(entry).small), variants_of(entry)
    first = next(iter(variants))
    if all(hasattr(row, "params") for row in variants.values()):
        first = min(variants, key=lambda name: variants[name].params)
    return sized(entry, small.pop("variant", first if not small else next(iter(variants))), **small)


def images_of(inputs: tuple[int | str, ...]) -> tuple[Shape, Shape]:
    """Two images of sizes that a program takes; of lines of text three in the second."""
    height, width, channels = inputs[1:]
    if isinstance(height, int) and isinstance(width, int):
        return (2, height, width, int(channels)), (1, height, width, int(channels))
    if isinstance(height, int):
        return (2, height, 72, int(channels)), (3, height, 96, int(channels))
    return (2, 64, 96, int(channels)), (1, 96, 64, int(channels))


USUAL = ("n", "32*h", "32*w", 3)


def _cases(kind: str, name: str, form: str | None = None, **usual: Any) -> Iterator[Case]:
    """All variants: the domain's `usual` attributes of a contract, in whose place those of the model's stand.

    Those that `compiled` names are compiled, if not the smallest; the first of them by default. `form` is one of a
    backbone.
    """
    entry = find(kind, name, WITH_DETECTORS)
    contract, small, variants = contract_of(entry), smallest(entry), variants_of(entry)
    own = usual | said(contract)
    own |= said(contract.forms[form]) if form in contract.forms else {}
    fields = {**usual.get("fields", {}), **own.get("fields", {}), **({"form": form} if form else {})}
    compiled = own.get("compiled", (getattr(small, "variant", ""),))
    classes = fields.get("num_classes", CLASSES)
    inputs = own.get("inputs", USUAL)
    image, other = images_of(inputs)
    settings = {key: own[key] for key in ("bfloat16", "flat", "constraints") if key in own}
    for variant in variants:
        chosen = small if variant == getattr(small, "variant", "") else sized(entry, variant)
        size = dataclasses.replace(chosen, **fields)
        if "num_classes" in {field.name for field in dataclasses.fields(size)}:
            size = dataclasses.replace(size, num_classes=classes)
        yield Case(
            kind,
            name,
            "-".join(part for part in (variant, form) if part),
            full=sized(entry, variant, **fields),
            small=size if variant in compiled else None,
            shapes=own["outputs"],
            image=own.get("image", image),
            other=own.get("other", other),
            symbolic=inputs,
            slow=own.get("slow", False) or variant != compiled[0],
            **settings,
        )


# -- classifiers and backbones (zoo/contracts.py) --------------------------------------------------------------------

_LINE = ("n", 48, "8*w", 3)


def class_scores(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, layer.config.num_classes)]


def maps(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    """What `features` promise: strides are pairs where they differ, and 0 where a map is pooled."""
    found = []
    for channels, stride in layer.features:
        rows, columns = stride if isinstance(stride, tuple) else (stride, stride)
        width = -(-w // columns) if columns else 1
        found.append((n, -(-h // rows) if rows else 1, width, channels))
    return found


def _classifiers() -> Iterator[Case]:
    for name, module in available("model", ("zoo",)).items():
        if not module.startswith(OF_TEXTS):
            yield from _cases("model", name, outputs=class_scores, fields={"num_classes": CLASSES})


def forms(entry: Entry) -> tuple[str, ...]:
    """What the field `form` of a backbone's config can be, its default first: images, pages, lines of text."""
    hint = typing.get_type_hints(entry.config).get("form")
    return typing.get_args(hint) if hint else ()


def has_features(name: str) -> bool:
    return "forward_features" in dir(find("backbone", name, WITH_DETECTORS).layer)


def _backbones() -> Iterator[Case]:
    """Backbones without a classifier, and the forms of others that their classifier does not have."""
    classifiers = available("model", WITH_DETECTORS)
    for name, module in available("backbone", WITH_DETECTORS).items():
        if module.startswith("zoo.text") or not has_features(name):
            continue
        others = forms(find("backbone", name, WITH_DETECTORS))
        fields = {"num_classes": 0} if others else {}
        if name not in classifiers and not others:
            yield from _cases("backbone", name, outputs=maps)
        for form in others[1:] if name in classifiers else others:
            lines = {"inputs": _LINE} if form == "line" else {}
            yield from _cases("backbone", name, form, outputs=maps, fields=fields, **lines)


# -- models of text lines and pages -----------------------------------------------------------------------------------


def of_words(name: str) -> bool:
    """Whether the model reads words and their boxes, so that others' tests hold what it keeps to."""
    return bool(contract_of(find("model", name, WITH_DETECTORS)).tested_in)


def _readers() -> Iterator[Case]:
    """A model takes pages whose sides are multiples of 32, or lines as high as its `example_shape`."""
    for name in [name for name in available("model", ("ocr",)) if not of_words(name)]:
        height, width = getattr(find("model", name, PACKAGES).layer, "example_shape", (1, 64, 64, 3))[1:3]
        inputs = USUAL if height == width else ("n", height, "8*w", 3)
        yield from _cases("model", name, outputs=lambda *_: None, inputs=inputs)


# -- segmentation models (segmentation/contracts.py) ------------------------------------------------------------------


def pixel_scores(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, h, w, layer.config.num_classes)]


def _segmenters() -> Iterator[Case]:
    for name in available("model", ("segmentation",)):
        yield from _cases("model", name, outputs=pixel_scores)


# -- backbones within models that are compiled ------------------------------------------------------------------------


def backbone_of(config: Any) -> tuple[type, str | None] | None:
    """The config's class and the form of the backbone of a model that has one."""
    own = getattr(getattr(config, "parts", config), "backbone", None)
    return None if own is None else (type(own), getattr(own, "form", None))


@functools.cache
def within_models() -> set[tuple[type, str | None]]:
    """The backbones, in their forms, of which a model of a domain is compiled by default."""
    models = [case.small for case in (*_readers(), *_segmenters()) if case.small and not case.slow]
    models += [smallest(find("model", name, WITH_DETECTORS)) for name in available("model", ("detection",))]
    return {found for config in models if (found := backbone_of(config)) is not None}


def _after_models(cases: Iterator[Case]) -> Iterator[Case]:
    """Alone those of `within_models` are compiled slowly."""
    for case in cases:
        again = (type(case.full), getattr(case.full, "form", None)) in within_models()
        yield dataclasses.replace(case, slow=case.slow or again)


CASES = (*_after_models(_classifiers()), *_after_models(_backbones()), *_readers(), *_segmenters())


@functools.cache
def is_classifier(case: Case) -> bool:
    """Whether the model is a backbone too: a classifier of zoo/contracts.py."""
    return case.kind == "model" and case.name in available("backbone", WITH_DETECTORS)
