"""Operations that do something else in a program that is cloned for testing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framework.paddle._kernel.tensor import Tensor


def _dropout_for_test(settings: Mapping[str, Any], args: Sequence[Any]) -> Tensor:
    kept = 1.0 - float(settings.get("p", 0.0))
    return args[0] if settings.get("mode") != "downscale_in_infer" else args[0] * kept


def _batch_norm_for_test(settings: Mapping[str, Any], args: Sequence[Any]) -> Tensor:
    from framework.paddle.nn import functional

    layout = settings["data_format"]
    return functional.batch_norm(*args[:5], training=False, epsilon=settings["epsilon"], data_format=layout)


TEST_FORMS: dict[str, Callable[[Mapping[str, Any], Sequence[Any]], Tensor]] = {
    "dropout": _dropout_for_test,
    "alpha_dropout": lambda settings, args: args[0],
    "batch_norm": _batch_norm_for_test,
}
