"""What a backbone promises to whoever builds on it: the domains' necks and heads, the classifier's tools, the tests."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

import jax

from framework.config import build


class Feature(NamedTuple):
    """A map that a backbone gives: [N, ceil(H / stride), ceil(W / stride), channels].

    `stride` is a pair (vertical, horizontal) where the two differ, as in networks for text lines: a line 48 pixels high
    becomes one row at (48, 8). It is 0 where the map is pooled over the whole image: [N, 1, 1, channels].
    """

    channels: int
    stride: int | tuple[int, int]


class BackboneConfig(Protocol):
    """The frozen dataclass that a backbone is built from, and what a model's config takes for its backbone.

    `variant` is a key of the module's table `VARIANTS`, whose rows have the published number of parameters, `params`.
    It may have `num_classes`, where 0 leaves the classifier out, and `deploy`, which builds the re-parameterised form.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]

    @property
    def variant(self) -> str: ...


class Backbone(Protocol):
    """An image network that classifies, or gives its maps to a neck. It is built from a `BackboneConfig`.

    Images are [N, H, W, 3] float32, normalised as its weights expect.
    """

    features: tuple[Feature, ...]

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """The maps of `features`, finest first."""
        ...

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        """Logits [N, num_classes]; without classes, what `forward_features` gives."""
        ...

    def __call__(self, x: jax.Array) -> Any: ...


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


def build_backbone(config: BackboneConfig, deploy: bool | None = None) -> Backbone:
    """The backbone of a config without its classifier: what necks and heads are built on.

    A model in two forms hands its own `deploy` on, which then counts and not that of `config`.
    """
    changes = {"num_classes": 0} if deploy is None else {"num_classes": 0, "deploy": deploy}
    fields = config.__dataclass_fields__
    return build(dataclasses.replace(config, **{key: v for key, v in changes.items() if key in fields}))
