"""Operations that do something else in a program that is cloned for testing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from framework.paddle._kernel.tensor import Tensor


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


TEST_FORMS: dict[str, Callable[[Mapping[str, object], Sequence[object]], Tensor]] = {
    "dropout": _dropout_for_test,
    "alpha_dropout": lambda settings, args: cast("Tensor", args[0]),
    "batch_norm": _batch_norm_for_test,
}
