"""Classes made of rows: what a constructor takes is data, and a base class does the rest."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Rowed:
    """Base of what `make_class` makes: the arguments go to `_begin` by name, with defaults."""

    _signature: ClassVar[inspect.Signature]

    def __init__(self, *args: object, **kwargs: object) -> None:
        try:
            bound = self._signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        bound.apply_defaults()
        del bound.arguments["self"]
        self._begin(bound.arguments)

    def _begin(self, settings: dict[str, object]) -> None:
        raise NotImplementedError


KindT = TypeVar("KindT", bound=Rowed)


def parameters(names: Iterable[str], defaults: Mapping[str, object]) -> list[inspect.Parameter]:
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
    """A class derived from `base` whose constructor takes these parameters."""

    def __init__(self: KindT, *args: object, **kwargs: object) -> None:
        base.__init__(self, *args, **kwargs)

    signature = inspect.Signature([inspect.Parameter("self", _PLAIN), *takes])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    body = {"__module__": module, "__doc__": doc, "__init__": __init__, "_signature": signature, **members}
    made: Any = type(name, (base,), body)
    return made
