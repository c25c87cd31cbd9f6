"""`predictor`, as every domain's package offers it: typed by the domain's predictor, documented by its options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from framework.inference.runtime import Runtime
from framework.workflow.artifacts import Model
from framework.workflow.options import options_signature
from framework.workflow.predict import open_predictor
from framework.workflow.predictor import Predictor

P = TypeVar("P", bound=Predictor[Any, Any, Any])


def make_predictor_function(
    domain: str, options: type, gives: type[P], default: str | None = None
) -> Callable[..., P]:
    """`predictor(model, *, device, precision, overrides, **options)` of a domain.

    Args:
        options: The dataclass of the options, whose fields are the function's keywords.
        gives: The class of the predictors.
        default: The model that is meant where none is named.
    """

    def predictor(
        model: Model,
        *,
        device: str | None = None,
        precision: str = "auto",
        overrides: Sequence[str] = (),
        **given: Any,
    ) -> P:
        runtime = Runtime(device, precision)
        found = open_predictor(model, domain=domain, runtime=runtime, overrides=overrides, options=given)
        return cast(P, found)

    if default is not None:
        predictor.__defaults__ = (default,)
    lines = [
        f"        {field.name}: {field.metadata.get('help', '')}."
        for field in dataclasses.fields(options)
        if field.init
    ]
    predictor.__signature__ = options_signature(options, predictor)  # type: ignore[attr-defined]
    predictor.__module__, predictor.__qualname__ = domain, "predictor"
    predictor.__doc__ = (
        f"{inspect.getdoc(gives)}\n\n"
        f"    Args:\n"
        f"        model: The name of a config in configs/{domain}, a config file, or an artifact's folder.\n"
        '        device: "cpu", "gpu", "gpu:1", …; None is jax\'s default.\n'
        '        precision: "float32", "bfloat16", or "auto": bfloat16 where it is fast and verified.\n'
        "        overrides: Settings of the config, as `-o` of the tools.\n"
        + "\n".join(lines)
        + "\n\n    Raises:\n"
        "        InputError: no such model, or an option out of range. ConfigError: an unknown option.\n"
        "        HubError: weights are neither here nor reachable.\n"
    )
    return predictor
