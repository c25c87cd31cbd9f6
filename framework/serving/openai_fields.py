"""Fields of OpenAI's requests: what is read out of their JSON, and what is said of a wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from framework.core.errors import did_you_mean
from framework.core.types import JSON
from framework.serving.errors import BadRequestError

T = TypeVar("T")
Fields = Mapping[str, JSON]
# Fields that say nothing about the text.
_IGNORED = (
    *(
        "user",
        "metadata",
        "store",
        "service_tier",
        "parallel_tool_calls",
        "safety_identifier",
        "prompt_cache_key",
    ),
    *("priority", "request_id", "verbosity", "prompt_cache_retention"),
)
_REPLACED = {"functions": "tools", "function_call": "tool_choice"}
"""What OpenAI's API took before, and what it takes now."""
_UNANSWERED = {
    "modalities": (None, ["text"]),
    "audio": (None,),
    "prediction": (None,),
    "web_search_options": (None,),
}


def check_names(fields: Fields, allowed: Sequence[str]) -> None:
    """Raises: BadRequestError, where a field is none of these and says something about the text."""
    for name, value in fields.items():
        if name in allowed or name in _IGNORED or value is None or value in _UNANSWERED.get(name, ()):
            continue
        raise BadRequestError(
            "the request has a field that is not known",
            where=name[:100],
            received=repr(value)[:100],
            allowed=", ".join(sorted(allowed)),
            fix=f"send {_REPLACED[name]}" if name in _REPLACED else did_you_mean(name[:100], allowed),
        )


def model_name(fields: Fields) -> str:
    """The model that a request names. Raises: BadRequestError."""
    name = fields.get("model")
    if not isinstance(name, str) or not name:
        raise field_error("model", name, "the name of a model of GET /v1/models")
    return name


def get_value(fields: Fields, name: str, kind: type[T], default: T) -> T:
    """A field of this type; `default` where it is missing or null. Raises: BadRequestError."""
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        words: dict[type, str] = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
        raise field_error(name, value, words[kind])
    return value


def get_int(fields: Fields, name: str, low: int, high: int | None = None) -> int | None:
    """A whole number in these bounds, maybe with a fraction of zero, as JSON has one kind of numbers; None where it is
    missing or null. Raises: BadRequestError."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    allowed = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < low
        or (high is not None and value > high)
    ):
        raise field_error(name, value, allowed)
    return value


def field_error(where: str, value: object, allowed: str) -> BadRequestError:
    """That a field cannot have this value."""
    received = value if isinstance(value, str) else repr(value)
    return BadRequestError("the request is not valid", where=where, received=received[:200], allowed=allowed)
