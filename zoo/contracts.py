"""What a backbone promises to whoever builds on it: the domains' necks and heads, the classifier's tools, the tests."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

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


class Encoded(NamedTuple):
    """What a text encoder gives: `hidden` [N, T, D], and `pooled` [N, D], or None where the encoder has no pooler."""

    hidden: jax.Array
    pooled: jax.Array | None


class TextEncoder(Protocol):
    """A network that reads N texts of up to T tokens.

    Its config is a `zoo.layers.text_encoder.TextEncoderConfig`. What is padded does not change the result of a token.
    """

    prefix: ClassVar[str]
    """The name under which upstream's models hold the encoder, such as `bert`."""
    size: Any
    """The TextSize that the variant and the config come to."""

    def forward(
        self, input_ids: jax.Array, token_type_ids: jax.Array | None = None, mask: jax.Array | None = None
    ) -> Encoded:
        """`input_ids` and `token_type_ids` [N, T] int32, all of the first type where None; `mask` [N, T] bool is False
        at what no token may read, and where None at the tokens `size.pad_id`."""
        ...


def build_backbone(config: Any) -> Any:
    """The backbone of a config without its classifier: what necks and heads are built on."""
    return build(dataclasses.replace(config, num_classes=0))
