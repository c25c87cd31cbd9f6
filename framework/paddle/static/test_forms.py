"""Operations that do something else than their compiled forms: in a program that is cloned for testing, and in all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap

Form = Callable[[Mapping[str, object], Sequence[object]], Tensor]


def _dropout_for_test(settings: Mapping[str, object], args: Sequence[object]) -> Tensor:
    keep = 1.0 - float(cast("float", settings.get("p", 0.0)))
    x = cast("Tensor", args[0])
    return x if settings.get("mode") != "downscale_in_infer" else x * keep


def _batch_norm_for_test(settings: Mapping[str, object], args: Sequence[object]) -> Tensor:
    from framework.paddle.nn import functional

    x, mean, variance = cast("Sequence[Tensor]", args[:3])
    weight, bias = cast("Sequence[Tensor | None]", args[3:5])
    epsilon, layout = cast("float", settings["epsilon"]), cast("str", settings["data_format"])
    return functional.batch_norm(
        x, mean, variance, weight, bias, training=False, epsilon=epsilon, data_format=layout
    )


def _known_sizes(x: Tensor) -> list[int]:
    """The sizes; -1 for those that are free: of a variable, or of an exported program."""
    sizes = x._value.known if isinstance(x._value, Symbol) else x._value.shape
    return [size if isinstance(size, int) else -1 for size in sizes]


def _sizes(settings: Mapping[str, object], args: Sequence[object]) -> Tensor:
    """Numbers, also while a program is traced: other operations take them as settings."""
    return wrap(as_array(np.array(_known_sizes(cast("Tensor", args[0])), np.int32)))


def _count(settings: Mapping[str, object], args: Sequence[object]) -> Tensor:
    sizes = _known_sizes(cast("Tensor", args[0]))
    return wrap(as_array(np.int64(-1 if -1 in sizes else np.prod(sizes))))


FORMS: dict[str, Form] = {"shape": _sizes, "numel": _count}
TEST_FORMS: dict[str, Form] = {
    **FORMS,
    "dropout": _dropout_for_test,
    "alpha_dropout": lambda settings, args: cast("Tensor", args[0]),
    "batch_norm": _batch_norm_for_test,
}
