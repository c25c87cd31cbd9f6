"""What a backbone promises to whoever builds on it: the domains' necks and heads, the classifier's tools, the tests."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

import jax

from framework.config import build


class Feature(NamedTuple):
    """A map that a backbone gives: [N, ceil(H / stride), ceil(W / stride), channels]."""

    channels: int
    stride: int


class Backbone(Protocol):
    """An image network that classifies, or gives its maps to a neck.

    Its config has `variant`, a key of the module's table `VARIANTS`, and `num_classes`: 0 leaves the classifier out.
    Images are [N, H, W, 3] float32, normalised as its weights expect.
    """

    features: tuple[Feature, ...]

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """The maps of `features`, finest first."""
        ...

    def forward(self, x: jax.Array) -> Any:
        """Logits [N, num_classes]; without classes, what `forward_features` gives."""
        ...


def build_backbone(config: Any) -> Any:
    """The backbone of a config without its classifier: what necks and heads are built on."""
    return build(dataclasses.replace(config, num_classes=0))
