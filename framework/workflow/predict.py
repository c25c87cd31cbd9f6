"""`predictor(...)` for models of every domain: from a name, a configuration or a folder to what makes results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framework.inference.runtime import Runtime
from framework.workflow.artifacts import Model, find_artifact
from framework.workflow.domain import find_domain
from framework.workflow.options import make_options
from framework.workflow.predictor import Predictor


def open_predictor(
    model: Model,
    *,
    domain: str | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Predictor[Any, Any, Any]:
    """The predictor of a model.

    Args:
        model: The name of a configuration, or of a task that a domain knows, such as "ner"; a configuration file
            (.yml); an artifact's folder; or a folder of another toolkit that a domain can import.
        domain: The only domain that is meant.
        runtime: Device, precision and engine.
        overrides: Settings of the configuration, as `-o` of the tools.
        options: Options of the domain's predictor by name; None stands for one that was not given.

    Raises:
        InputError: no such model. ConfigError: an option that the domain does not have.
        FormatError: a model of another domain. HubError: weights are neither here nor reachable.
    """
    given: Mapping[str, Any] = options or {}
    if domain is not None and isinstance(model, str):
        model, given = find_domain(domain).find_alias(model, given)
    found = find_artifact(model, overrides, domain)
    chosen = make_options(found.domain.options, given, f"the domain {found.domain.name}")
    return found.domain.open(found.artifact, chosen, runtime or Runtime())


def predictor(
    model: Model,
    *,
    device: str | None = None,
    precision: str = "auto",
    overrides: Sequence[str] = (),
    **options: Any,
) -> Predictor[Any, Any, Any]:
    """As `open_predictor`, for a model of any domain; `options` are those of the model's own domain."""
    return open_predictor(model, runtime=Runtime(device, precision), overrides=overrides, options=options)
