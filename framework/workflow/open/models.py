"""Models by name, with or without weights, as one builds them in a script: `create_model` and `list_models`.

A name is that of a variant, such as "resnet50" or "pp_lcnet_x0_25", or that of weights in the index of the hub, such as
"resnet50_vd_ssld_imagenet" or "picodet_s_320_bccd". Letters' case and `_`, `-` and `.` in it do not count, so
PaddleClas's spellings are accepted too. Variants are found in the registry: those of the backbones and classifiers of
the zoo, and of the packages that announce components.
"""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import functools
import logging
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from framework import hub, nn
from framework.config import Kind, bind, build
from framework.config.domains import component_packages, packages_of_domain
from framework.config.registry import Catalog
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.core.model_config import ConfigT, ModelConfig
from framework.core.types import JSON
from framework.workflow.domain.weights import (
    load_state_into,
    load_weights_into,
    read_state,
    resolve_weights,
    spell_as_ours,
)

log = logging.getLogger("oar")
Weights = bool | str | os.PathLike[str]
_CLASSES, _CHANNELS = "num_classes", "in_channels"


@dataclass(frozen=True)
class _Choice:
    """What a name stands for: a model's config as its size table or the index has it."""

    name: str
    type: str
    packages: tuple[str, ...]
    model: Mapping[str, JSON]  # the fields of the config
    weights: str | None = None  # of the index

    @property
    def is_backbone(self) -> bool:
        return self.type in Catalog(self.packages).available("backbone")

    def config(self) -> ModelConfig:
        kind = "backbone" if self.is_backbone else "model"
        return bind({"type": self.type, **self.model}, Annotated[ModelConfig, Kind(kind)], self.packages)


def create_model(
    name: str,
    pretrained: Weights = False,
    *,
    num_classes: int | None = None,
    features_only: bool = False,
    **options: object,
) -> nn.Layer:
    """The model of this name, in training mode as Paddle's and torch's; call `eval()` before it predicts.

    Args:
        name: One of `list_models()`, or of `list_models(pretrained=True)`.
        pretrained: True takes weights of the index: those of the name, or the first that are of the variant with these
            options, or fit it. Or a file (.pdparams, .pth, .safetensors, …), a checkpoint or run, a name of the index,
            an address.
        num_classes: Where the weights have another number, the head begins with fresh values, and the log says so.
        features_only: The backbone without its classifier: `forward` gives the maps that `features` describes.
        options: Other fields of the model's config. With weights `in_channels` may differ from theirs: the kernels of
            the first layer are averaged or repeated, and the log says so.

    Raises:
        InputError: there is no model of this name; the nearest are named.
        ConfigError: the model has no such option or value, or no weights are known for it.
        HubError: the weights are not on this machine and cannot be downloaded; says from where, and what to do.
        WeightError: the weights are of another model.
    """
    if not isinstance(pretrained, bool | str | os.PathLike):
        raise InputError(
            "pretrained must be a switch, a path, a name or an address",
            where=f"create_model({name!r}, pretrained=...)",
            received=repr(pretrained)[:80],
            allowed="True, False, a path, a name that `oar models list` shows, or an address",
        )
    choice = _find(name)
    default_config = choice.config()
    default_config = _replace(
        choice, default_config, {key: value for key, value in options.items() if key != _CHANNELS}
    )
    changed = {_CLASSES: num_classes, _CHANNELS: options.get(_CHANNELS)}
    config = _replace(
        choice, default_config, {key: value for key, value in changed.items() if value is not None}
    )
    if features_only:
        config = _without_head(choice, config)
    model: nn.Layer = build(config)
    if pretrained is False:
        return model
    path = (
        hub.fetch(_default_weights(choice, default_config))
        if pretrained is True
        else resolve_weights(os.fspath(pretrained))
    )
    if all(getattr(config, key, None) == getattr(default_config, key, None) for key in (_CLASSES, _CHANNELS)):
        return load_weights_into(model, path)
    return _load_changed(model, config, path, name)


def list_models(pattern: str = "*", pretrained: bool = False) -> list[str]:
    """The names that `create_model` takes, sorted; with `pretrained` the names of weights and not of variants.

    Args:
        pattern: As of file names: `*` for any letters, `?` for one. Case, `_`, `-` and `.` do not count.
    """
    names = _weights() if pretrained else _variants()
    pattern_plain = hub.plain_name(pattern)
    return sorted(choice.name for key, choice in names.items() if fnmatch.fnmatchcase(key, pattern_plain))


@functools.cache
def _variants() -> Mapping[str, _Choice]:
    """All variants by their plain names. It imports the models' modules: their tables hold the names."""
    packages = ("zoo", *component_packages())
    catalog, choices = Catalog(packages), {}
    for kind in ("backbone", "model"):
        for type_name in catalog.available(kind):
            module = catalog.find(kind, type_name).module
            stem = module.rpartition(".")[2]
            for variant in vars(sys.modules[module]).get("VARIANTS", ("",)):
                # "s" and "w18" mean something beside the model's name only.
                is_short = re.match("[a-z]{3}", variant) is None
                name = "_".join(filter(None, (stem, variant))) if is_short else variant
                fields = {"variant": variant} if variant else {}
                choices.setdefault(hub.plain_name(name), _Choice(name, type_name, packages, fields))
    return choices


def _weights() -> dict[str, _Choice]:
    """The entries of the index that say which model they are of, by their plain names."""
    choices = {}
    for name, item in hub.entries().items():
        fields = dict(item.model)
        if type_name := fields.pop("type", None):
            shared = ("zoo", "framework", *component_packages())
            packages = shared if item.domain == "zoo" else packages_of_domain(item.domain)
            choices[hub.plain_name(name)] = _Choice(name, type_name, packages, fields, name)
    return choices


def _find(name: str) -> _Choice:
    choices = {**_weights(), **_variants()}
    if hub.plain_name(name) in choices:
        return choices[hub.plain_name(name)]
    near = [choices[key].name for key in difflib.get_close_matches(hub.plain_name(name), choices, n=5)]
    raise InputError(
        "unknown model",
        where="create_model",
        received=repr(name),
        allowed=f"one of the {len(_variants())} names of list_models() and of list_models(pretrained=True)",
        fix=f"the nearest: {', '.join(near)}" if near else None,
    )


def _replace(choice: _Choice, config: ConfigT, settings: Mapping[str, object]) -> ConfigT:
    fields = [field.name for field in dataclasses.fields(config)]
    unknown = [key for key in settings if key not in fields]
    if unknown:
        raise ConfigError(
            "this model has no such option",
            where=f"create_model({choice.name!r})",
            received=", ".join(f"{key}={settings[key]!r}" for key in unknown),
            allowed=", ".join(fields),
            fix=did_you_mean(unknown[0], fields),
        )
    return dataclasses.replace(config, **settings)


def _without_head(choice: _Choice, config: ConfigT) -> ConfigT:
    if not choice.is_backbone:
        raise ConfigError(
            "only backbones have features",
            where=f"create_model({choice.name!r}, features_only=True)",
            received=choice.type,
            allowed=", ".join(Catalog(choice.packages).available("backbone")),
        )
    has_head = _CLASSES in {field.name for field in dataclasses.fields(config)}
    return dataclasses.replace(config, num_classes=0) if has_head else config


def _default_weights(choice: _Choice, config: ModelConfig) -> str:
    """The name of a choice's weights: its own, or the first of the index that are of this config, or else fit it."""
    if choice.weights is not None:
        return choice.weights
    of_type = [item for item in _weights().values() if item.type == choice.type]
    of_variant = [item for item in of_type if item.model.get("variant") == choice.model.get("variant")]
    configs = {item.name: item.config() for item in of_variant}
    for name, other in configs.items():
        if other == config:
            return name
    shapes = build(config).state_shapes()
    for name, other in configs.items():
        if build(other).state_shapes() == shapes:
            return name
    raise ConfigError(
        "no weights of this model are in the index",
        where=f"create_model({choice.name!r}, pretrained=True)",
        allowed=", ".join(configs or [item.name for item in of_type]) or f"none of {choice.type} are known",
        fix=f"create_model({next(iter(configs))!r}, pretrained=True)"
        if configs
        else "pretrained=<a file> loads your own",
    )


def _load_changed(model: nn.Layer, config: ModelConfig, path: Path, name: str) -> nn.Layer:
    """Weights into a model that may have another head and another number of input channels than they."""
    classes: int | None = getattr(config, _CLASSES, None)
    channels: int | None = getattr(config, _CHANNELS, None)
    state = spell_as_ours(read_state(path), model)
    shapes = model.state_shapes()
    differ = [key for key in shapes if key in state and state[key].shape != shapes[key]]
    if fresh := [key for key in differ if key in _depending(config, _CLASSES)]:
        state |= {key: np.asarray(model.state_dict()[key]) for key in fresh}
        log.warning(
            "%s: the head begins with fresh values, the weights have another number of classes than %d: %s",
            name,
            classes,
            ", ".join(fresh),
        )
    adapted = [key for key in differ if key in _depending(config, _CHANNELS)]
    if adapted and channels is not None:
        state |= {key: _adapt_channels(state[key], channels) for key in adapted}
        log.warning("%s: made for %d channels: %s", name, channels, ", ".join(adapted))
    if classes == 0:
        head = build(dataclasses.replace(config, num_classes=1)).state_shapes().keys() - shapes.keys()
        state = {key: value for key, value in state.items() if key not in head}
    return load_state_into(model, state)


def _depending(config: ModelConfig, field: str) -> set[str]:
    """The entries of the state dict whose shape depends on a number of the config."""
    number = getattr(config, field, 0)
    if not number:
        return set()
    one = build(config).state_shapes()
    other = build(dataclasses.replace(config, **{field: number + 1})).state_shapes()
    return {key for key, shape in one.items() if other.get(key) != shape}


def _adapt_channels(kernel: np.ndarray, channels: int) -> np.ndarray:
    """A kernel [out, in, h, w] for another number of input channels; where all are equal, its answer stays the same."""
    count = kernel.shape[1]
    if channels < count:
        return np.repeat(kernel.sum(axis=1, keepdims=True) / np.float32(channels), channels, axis=1)
    source = np.arange(channels) % count
    return kernel[:, source] / np.bincount(source)[source].astype(np.float32)[:, None, None]
