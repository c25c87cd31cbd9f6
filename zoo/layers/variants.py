"""The check that every model with a table of variants makes."""

from __future__ import annotations

from collections.abc import Iterable

from framework.core.errors import ConfigError, nearest


def check_variant(model: str, variant: str, known: Iterable[str]) -> None:
    """Raises ConfigError, with the known names and the nearest, when `variant` is none of them."""
    known = list(known)
    if variant not in known:
        near = nearest(variant, known)
        raise ConfigError(
            f"unknown variant of {model}",
            received=repr(variant),
            allowed=", ".join(known),
            fix=f"did you mean {near!r}?" if near else None,
        )
