"""Classes made of rows: what a constructor takes is data, and a base class does the rest."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Rowed(Protocol):
    """What `make_class` derives from."""

    def _begin(self, settings: dict[str, Any], /) -> None: ...


KindT = TypeVar("KindT", bound=Rowed)


def parameters(names: Iterable[str], defaults: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Parameters in this order; those that `defaults` has not are needed."""
    return [inspect.Parameter(n, _PLAIN, default=defaults.get(n, inspect.Parameter.empty)) for n in names]


def make_class(
    name: str,
    base: type[KindT],
    takes: Iterable[inspect.Parameter],
    module: str,
    doc: str | None,
    **members: object,
) -> type[KindT]:
    """A class whose constructor takes these parameters and gives them by name, with defaults, to `_begin` of `base`."""
    signature = inspect.Signature([inspect.Parameter("self", _PLAIN), *takes])

    def __init__(self: Any, *args: object, **kwargs: object) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}.__init__() {error}") from None
        bound.apply_defaults()
        base._begin(bound.arguments.pop("self"), bound.arguments)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    made: Any = type(name, (base,), {"__module__": module, "__doc__": doc, "__init__": __init__, **members})
    return made
