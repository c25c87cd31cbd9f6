"""`predictor(...)` for models of every domain: from a name, a configuration or a folder to what makes results."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from framework.core.process import pause_collection
from framework.core.process_state import state
from framework.inference.runtime import Runtime
from framework.workflow.domain.capabilities import TaskAliases
from framework.workflow.domain.config_file import ConfigFile
from framework.workflow.domain.domain import Model, find_domain
from framework.workflow.domain.options import make_options, options_signature
from framework.workflow.domain.predictor import AnyPredictor
from framework.workflow.open.artifacts import find_artifact

P = TypeVar("P", bound=AnyPredictor)


def open_predictor(
    model: Model | ConfigFile,
    *,
    domain: str | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
) -> AnyPredictor:
    """The predictor of a model.

    Args:
        model: The name of a configuration, or of a task that a domain knows, such as "ner"; a configuration file
            (.yml), or one that is read already; an artifact's folder; or a folder of another toolkit that a domain can
            import.
        domain: The only domain that is meant.
        runtime: Device, precision and engine, and whether code that artifacts name may run.
        overrides: Settings of the configuration, as `-o` of the tools.
        options: Options of the domain's predictor by name; None stands for one that was not given.

    Raises:
        InputError: no such model. ConfigError: an option that the domain does not have.
        FormatError: a model of another domain. HubError: weights are neither here nor reachable.
    """
    settings: Mapping[str, object] = options or {}
    if domain is not None and isinstance(model, str):
        aliases = find_domain(domain).capability(TaskAliases)
        if aliases is not None and model in aliases.names:
            alias = aliases.names[model]
            model, settings = alias.config, {**alias.options, **settings}
    runtime = runtime or Runtime()
    with pause_collection():
        opened = find_artifact(model, overrides, domain, runtime, settings)
        domain_options = make_options(opened.domain.options, settings, f"the domain {opened.domain.name}")
        state.slow_engines.clear()
        predictor = opened.domain.open(opened.artifact, domain_options, runtime)
        if state.slow_engines:
            predictor.engine_warnings = tuple(state.slow_engines)
        return predictor


def predictor(
    model: Model,
    *,
    device: str | None = None,
    precision: str = "auto",
    engine: str = "auto",
    threads: int | None = None,
    overrides: Sequence[str] = (),
    trust: bool = False,
    **options: object,
) -> AnyPredictor:
    """As `open_predictor`, for a model of any domain; `options` are those of the model's own domain.

    An artifact whose config names code (`imports`) is refused without `trust`: it is data, and runs none of its own.
    """
    runtime = Runtime(device, precision, engine, threads, trust)
    return open_predictor(model, runtime=runtime, overrides=overrides, options=options)


def make_predictor_function(
    domain: str, options: type, gives: type[P], default: str | None = None
) -> Callable[..., P]:
    """`predictor(model, *, device, precision, engine, threads, overrides, **options)` of a domain.

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
        engine: str = "auto",
        threads: int | None = None,
        overrides: Sequence[str] = (),
        trust: bool = False,
        **given: object,
    ) -> P:
        runtime = Runtime(device, precision, engine, threads, trust)
        predictor_made = open_predictor(
            model, domain=domain, runtime=runtime, overrides=overrides, options=given
        )
        return cast(P, predictor_made)

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
        '        engine: "xla", "onnxruntime", "openvino", or "auto": the fastest that the artifact knows of.\n'
        "        threads: CPUs for one call, of engines that can be told.\n"
        "        overrides: Settings of the config, as `-o` of the tools.\n"
        "        trust: Whether code that an artifact names by `imports` may run.\n"
        + "\n".join(lines)
        + "\n\n    Raises:\n"
        "        InputError: no such model, or an option out of range. ConfigError: an unknown option.\n"
        "        HubError: weights are neither here nor reachable.\n"
    )
    return predictor
