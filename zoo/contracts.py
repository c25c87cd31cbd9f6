"""What a backbone promises to the domains' necks and heads, the classifier's tools and the tests; and what the tests
have to know of a model of any kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from framework import nn
from framework.config import build
from framework.nn import functional as F
from framework.nn.reparam import Arrays, own_state

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Contract:
    """What differs in a model from the usual one of its domain: `contract = Contract(...)` in its class.

    tests/contract reads it and nothing else does. What is not said is the domain's usual value, which the tests have;
    most models need no contract. A class that derives from the model has the same one.

    Attributes:
        small: Fields of the config with which the model has the same structure and is quick to compile, where the
            variant of the fewest parameters is not.
        fields: Fields of every config that is tested, at its published size too.
        compiled: The variants that are compiled, by default the smallest; all but the first of them in slow tests.
        inputs: The images of the exported program: each size a number, a name, or a number times a name, such as
            ("n", 48, "8*w", 3).
        image: The images [N, H, W, C] that are computed, where those that follow from `inputs` do not suit.
        other: A second size, for which the program is compiled too.
        constraints: On the sizes of the exported program, such as "h >= 32".
        outputs: The shapes of the outputs for (layer, N, H, W), in the layer's mode.
        bfloat16: Bound of what products in bfloat16 change: the root of the mean square of the differences, relative to
            the deviation of the outputs.
        flat: A regular expression of the parameters whose gradient is 0, and of the running statistics that stay, by
            construction; and why. Both ways are tested.
        slow: Whether it is compiled in slow tests only.
        forms: What differs in other forms of a backbone, by form.
        tested_in: The files of tests that hold what the model keeps to, where it takes neither images nor tokens alone.
    """

    small: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    compiled: tuple[str, ...] | None = None
    inputs: tuple[int | str, ...] | None = None
    image: Shape | None = None
    other: Shape | None = None
    constraints: tuple[str, ...] | None = None
    outputs: Callable[[Any, int, int, int], list[Shape]] | None = None
    bfloat16: float | None = None
    flat: tuple[str, str] | None = None
    slow: bool | None = None
    forms: Mapping[str, Contract] = field(default_factory=dict)
    tested_in: tuple[str, ...] = ()


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
    It may have `num_classes`, by default those of the official weights, where 0 leaves the classifier out, and
    `deploy`, which builds the re-parameterised form.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]

    @property
    def variant(self) -> str: ...


ConfigT = TypeVar("ConfigT", bound=BackboneConfig)


class Backbone(nn.Model[ConfigT]):
    """Base of the image networks that classify, or give their maps to a neck. They are built from a `BackboneConfig`.

    Images are [N, H, W, 3] float32, normalised as the weights expect. `forward` gives logits [N, num_classes], and
    without classes (`config.num_classes` 0, or none) what `forward_features` gives.
    """

    features: tuple[Feature, ...]

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """The maps of `features`, finest first."""
        raise NotImplementedError(f"{type(self).__name__}.forward_features")

    def logits(self, x: jax.Array) -> jax.Array:
        """[N, num_classes] of the last map [N, H, W, C]."""
        return self.fc(F.global_avg_pool2d(x)[:, 0, 0])

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, ...]:
        maps = self.forward_features(x)
        return self.logits(maps[-1]) if getattr(self.config, "num_classes", 0) else maps

    def deploy_state(self) -> Arrays:
        """The arrays of the deploy form. A network whose config has no `deploy` has one form, which it keeps within a
        model that has two.
        """
        if "deploy" in self.config.__dataclass_fields__:
            return own_state(self)
        return {name: np.asarray(value) for name, value in self.state_dict().items()}


def build_backbone(config: BackboneConfig, deploy: bool | None = None) -> Backbone:
    """The backbone of a config without its classifier: what necks and heads are built on.

    A model in two forms hands its own `deploy` on, which then counts and not that of `config`.
    """
    changes = {"num_classes": 0} if deploy is None else {"num_classes": 0, "deploy": deploy}
    fields = config.__dataclass_fields__
    return build(dataclasses.replace(config, **{key: v for key, v in changes.items() if key in fields}))
