"""Every variant of every registered model and backbone of images but detectors, from the registry.

A new model is no new row here. What a domain's models take and give is said by its function below; the tables hold what
some models differ in, and opt-outs with their reasons.
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

PACKAGES = ("ocr", "segmentation", "zoo.classification", "zoo", "framework")
WITH_DETECTORS = ("ocr", "detection", "segmentation", "zoo", "framework")
Shape = tuple[int, ...]
Shapes = Callable[[nn.Layer, int, int, int], "list[Shape] | None"]
CLASSES = 11
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
    """The rows of the module's size table; one without a name where it has none."""
    return getattr(sys.modules[entry.module], "VARIANTS", {"": None})


def sized(entry: Entry, variant: str, **fields: Any) -> Any:
    """The config of a variant, with those of `fields` that it has."""
    assert dataclasses.is_dataclass(entry.config)
    known = {field.name for field in dataclasses.fields(entry.config)}
    own = {"variant": variant, **fields} if variant else fields
    return entry.config(**{name: value for name, value in own.items() if name in known})


def smallest(entry: Entry) -> Any:
    """What is compiled: SMALL of the module, a variant or a config, else the row of the fewest parameters."""
    module, variants = sys.modules[entry.module], variants_of(entry)
    small = getattr(module, "SMALL", None)
    if small is None and all(hasattr(row, "params") for row in variants.values()):
        small = min(variants, key=lambda name: variants[name].params)
    if small is None:
        small = next(iter(variants))
    return sized(entry, small) if isinstance(small, str) else small


def _cases(kind: str, name: str, shapes: Shapes, **own: Any) -> Iterator[Case]:
    """All variants; `compiled` names those that are compiled, if not the smallest, and the first of them by default.

    `config` are fields of all configs, `form` is one of a backbone.
    """
    entry = find(kind, name, WITH_DETECTORS)
    fields, small, variants = own.pop("config", {}), smallest(entry), variants_of(entry)
    compiled = own.pop("compiled", (getattr(small, "variant", ""),))
    classes = fields.get("num_classes", CLASSES)
    slow = own.pop("slow", False)
    for variant in variants:
        chosen = small if variant == getattr(small, "variant", "") else sized(entry, variant)
        size = dataclasses.replace(chosen, **fields)
        if "num_classes" in {field.name for field in dataclasses.fields(size)}:
            size = dataclasses.replace(size, num_classes=classes)
        small_case = {"small": size if variant in compiled else None, "slow": slow or variant != compiled[0]}
        label = "-".join(part for part in (variant, fields.get("form")) if part)
        yield Case(kind, name, label, sized(entry, variant, **fields), shapes=shapes, **small_case, **own)


def halve(size: int, times: int) -> int:
    for _ in range(times):
        size = -(-size // 2)
    return size


# -- classifiers and backbones (zoo/contracts.py) --------------------------------------------------------------------

# Learnable affines of PP-LCNetV3 whose factor and summand the next layer takes out again
_NORMALISED_BRANCHES = "an affine, and then nothing but normalised 1x1 branches"
_AFFINE = r"blocks(?!6\.[01]\.)\d\.\d\.dw_conv\.act\.lab\.(scale|bias)"  # not where squeezing stands between
_STRIDED = r"blocks[345]\.0\.dw_conv\.lab\.(scale|bias)"  # the integer 2 as stride: no activation
_LINE = {"image": (2, 48, 72, 3), "other": (3, 48, 96, 3), "symbolic": ("n", 48, "8*w", 3)}
_LCNET_V3 = {"flat": (f"{_AFFINE}|{_STRIDED}", _NORMALISED_BRANCHES)}
# What differs from the usual case, by class.
_CLASSIFIERS: dict[str, dict[str, Any]] = {
    # Its inner classifiers, which only training runs, take a map of 11 to 13 pixels.
    "GoogLeNet": {
        "shapes": lambda layer, n, h, w: [(n, layer.config.num_classes)] * (3 if layer.training else 1),
        "image": (2, 192, 192, 3),
        "other": (1, 192, 192, 3),
        "symbolic": ("n", 192, 192, 3),
    },
    # As in SqueezeNet, convolutions and poolings without padding: the sides are numbers of the program.
    "InceptionV3": {"image": (2, 96, 128, 3), "other": (1, 96, 128, 3), "symbolic": ("n", 96, 128, 3)},
    "CSPResNet": {
        "flat": (
            r"stages\.[023]\.blocks\.0\.conv2\.alpha",
            "below 0 with these weights, where upstream takes 1",
        ),
    },
    "LeNet": {"image": (2, 28, 28, 3), "other": (1, 28, 28, 3), "symbolic": ("n", 28, 28, 3)},
    "MobileNetV1Enhance": _LINE,
    # Smaller scales have two channels in the first squeeze: with these weights ReLU cuts both.
    "MobileNetV3": {"compiled": ("mobilenetv3_small_x1_0",)},
    "PPLCNetV3": _LCNET_V3,
    "SVTRNet": {
        "config": {"image_hw": (32, 32), "columns": 8},
        "image": (2, 32, 32, 3),
        "other": (1, 32, 32, 3),
        "symbolic": ("n", 32, 32, 3),
    },
    "SqueezeNet": {"other": (1, 64, 96, 3), "symbolic": ("n", 64, 96, 3)},
    # The number of windows is a number of the program.
    "SwinTransformer": {"other": (1, 64, 96, 3), "symbolic": ("n", 64, 96, 3)},
    "TextResNet": {"image": (2, 32, 72, 3), "other": (3, 32, 96, 3), "symbolic": ("n", 32, "8*w", 3)},
    "VisionTransformer": {
        "config": {"image_size": 64},
        "image": (2, 64, 64, 3),
        "other": (1, 64, 64, 3),
        "symbolic": ("n", 64, 64, 3),
    },
}


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
        if not module.startswith("zoo.text"):
            own = dict(_CLASSIFIERS.get(name, {}))
            config = {"num_classes": CLASSES, **own.pop("config", {})}
            yield from _cases("model", name, own.pop("shapes", class_scores), config=config, **own)


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
        if name not in classifiers and not others:
            yield from _cases("backbone", name, maps, **_CLASSIFIERS.get(name, {}))
        for form in others[1:] if name in classifiers else others:
            own = dict(_CLASSIFIERS.get(name, {})) | (_LINE if form == "line" else {})
            if form == "line" and name == "PPLCNetV3":
                own["flat"] = (_AFFINE, _NORMALISED_BRANCHES)
            yield from _cases("backbone", name, maps, config={"form": form, "num_classes": 0}, **own)


# -- models of text lines and pages -----------------------------------------------------------------------------------


def _text_maps(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    count = 1
    if layer.training and not layer.config.deploy:
        count = 12 if layer.config.parts.head.auxiliary else 3
    return [(n, h, w)] * count


def _line_logits(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
    return [(n, w // 8, layer.config.parts.num_classes)]


# What differs, by class. The other sizes of a reader differ in their parts, so some are compiled too, slowly.
_READERS: dict[str, dict[str, Any]] = {
    "CRNN": {
        "shapes": lambda layer, n, h, w: [(n, w // 4, layer.config.num_classes)],
        "image": (2, 32, 44, 3),
        "other": (1, 32, 64, 3),
        "symbolic": ("n", 32, "4*w", 3),
    },
    "DBNet": {"shapes": _text_maps, "compiled": ("PP-OCRv6_tiny_det", "PP-OCRv3_mobile_det")},
    "Distillation": {"flat": (r"Teacher\..*", "the student alone runs outside of training")},
    "PARSeq": {
        "shapes": lambda layer, n, h, w: [(n, layer.config.max_text_length + 1, layer.config.num_classes)],
        "image": (2, 32, 128, 3),
        "other": (3, 32, 128, 3),
        "symbolic": ("n", 32, 128, 3),
    },
    "PPFormulaNet": {
        "shapes": lambda layer, n, h, w: [(n, 3, layer.head.config.vocab_size)],
        "image": (2, 64, 96, 3),
        "other": (1, 96, 64, 3),
        "symbolic": ("n", "32*h", "32*w", 3),
    },
    "SLANet": {
        "shapes": lambda layer, n, h, w: [(n, 501, layer.head.tokens), (n, 501, layer.head.coordinates)],
        "image": (2, 64, 96, 3),
        "other": (1, 96, 64, 3),
        "symbolic": ("n", "32*h", "32*w", 3),
    },
    "SLANeXt": {
        "config": {"image_size": 64},
        "shapes": lambda layer, n, h, w: [(n, layer.head.steps, count) for count in (50, 8)],
        "image": (2, 64, 64, 3),
        "other": (1, 64, 64, 3),
        "symbolic": ("n", 64, 64, 3),
        "flat": (r".*net_3\.weight", "upstream's checkpoints have it, and it is called for formulas alone"),
    },
    "SVTR": {
        "shapes": lambda layer, n, h, w: [(n, w // 4, layer.config.num_classes)],
        "image": (2, 32, 100, 3),
        "other": (1, 32, 100, 3),
        "symbolic": ("n", 32, 100, 3),
    },
    "TableGridNet": {
        "shapes": lambda layer, n, h, w: [(n, h // 2), (n, h // 2), (n, w // 2), (n, 40, 14), (n, 40, 14)],
        "image": (2, 64, 96, 3),
        "other": (1, 96, 64, 3),
        "symbolic": ("n", "32*h", "32*w", 3),
    },
    "TableMaster": {
        "shapes": lambda layer, n, h, w: [(n, layer.head.steps, count) for count in (43, 4)],
        "image": (2, 64, 96, 3),
        "other": (1, 96, 64, 3),
        "symbolic": ("n", 64, 96, 3),
    },
    "TextClassifier": {
        "shapes": lambda layer, n, h, w: [(n, layer.config.parts.num_classes)],
        "compiled": ("ch_ppocr_mobile_v2.0_cls", "PP-LCNet_x0_25_textline_ori"),
        "image": (4, 48, 77, 3),
        "other": (1, 48, 64, 3),
        "symbolic": ("n", 48, "w", 3),
        "config": {"num_classes": None},
    },
    "UVDoc": {
        "shapes": lambda layer, n, h, w: [(n, *(-(-side // 16) for side in layer.config.size_hw), 2)],
        "image": (2, 64, 64, 3),
        "other": (1, 80, 64, 3),  # is resized
        "symbolic": ("n", 64, 64, 3),
    },
    "TextRecognizer": {
        "shapes": _line_logits,
        "compiled": ("PP-OCRv6_tiny_rec", "PP-OCRv3_mobile_rec", "PP-OCRv6_small_rec"),
    },
}


# They read words and their boxes: tests/unit/ocr/fields, tests/golden/test_layoutxlm.py.
OF_WORDS = ("FieldTagger", "LayoutXLMForRe", "LayoutXLMForSer")


def _readers() -> Iterator[Case]:
    """A model takes pages whose sides are multiples of 32, or lines as high as its `example_shape`."""
    for name in [name for name in available("model", ("ocr",)) if name not in OF_WORDS]:
        entry = find("model", name, PACKAGES)
        height, width = getattr(entry.layer, "example_shape", (1, 64, 64, 3))[1:3]
        line = {"image": (2, height, 72, 3), "other": (3, height, 96, 3), "symbolic": ("n", height, "8*w", 3)}
        own = {"shapes": lambda *_: None, **({} if height == width else line), **_READERS.get(name, {})}
        yield from _cases("model", name, **own)


# -- segmentation models (segmentation/contracts.py) ------------------------------------------------------------------


def _segmented(count: int = 0, embedded: bool = False) -> Shapes:
    """Logits for every pixel, in training `count` times more; `embedded`: and what learns by contrast, at a quarter."""

    def shapes(layer: nn.Layer, n: int, h: int, w: int) -> list[Shape]:
        config = layer.config
        found = [(n, h, w, config.num_classes)] * (1 + count * layer.training)
        if embedded and layer.training:
            coarse = (n, halve(h, 2), halve(w, 2))
            found += [(*coarse, config.num_classes), (*coarse, config.embedding_dim)]
        return found

    return shapes


_ANY = {"image": (2, 61, 95, 3), "symbolic": ("n", "h", "w", 3)}
_BY_32 = {"image": (2, 64, 96, 3), "symbolic": ("n", "32*h", "32*w", 3)}
# What differs from the usual case of a segmentation model, whose program takes multiples of 32 pixels, by class.
_SEGMENTERS: dict[str, dict[str, Any]] = {
    "CGNet": _ANY,
    "HRNetW48Contrast": {"shapes": _segmented(embedded=True)},
    "OCRNet": {"shapes": _segmented(1)},
    "PPHumanSegLite": {
        **_ANY,
        "flat": (r"block[12]\.[1-9]\._depthwise_separable_0\..*", "upstream has it and does not call it"),
    },
    "PPLiteSeg": {**_ANY, "shapes": _segmented(2)},
    "SegFormer": {**_ANY, "constraints": ("h >= 32", "w >= 32")},
}


def _segmenters() -> Iterator[Case]:
    for name in available("model", ("segmentation",)):
        yield from _cases("model", name, **{"shapes": _segmented(), **_BY_32, **_SEGMENTERS.get(name, {})})


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
