"""What models with a table of variants share: the check of a variant's name, its row, and widths that a row scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from framework.core.errors import ConfigError, nearest

Row = TypeVar("Row", bound=tuple)


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


@dataclass(frozen=True)
class VariantConfig(Generic[Row]):
    """Base of a model's config: `class NetConfig(VariantConfig[Size], table=VARIANTS)`. A row is a NamedTuple.

    Raises:
        ConfigError: the table has no such variant.
    """

    table: ClassVar[Mapping[str, tuple]]

    variant: str

    def __init_subclass__(cls, table: Mapping[str, Row] | None = None) -> None:
        super().__init_subclass__()
        if table is not None:
            cls.table = table

    def __post_init__(self) -> None:
        check_variant(type(self).__name__.removesuffix("Config"), self.variant, self.table)

    @property
    def parts(self) -> Row:
        """The variant's row; this config's own entries of the same names, where not None, take the place of its."""
        row: Any = self.table[self.variant]
        own = {name: getattr(self, name, None) for name in row._fields}
        return row._replace(**{name: value for name, value in own.items() if value is not None})


class ScaledSize(NamedTuple):
    """The multiplier of all widths, and the published number of parameters with 1000 classes."""

    scale: float
    params: int


def scaled_width(channels: int, scale: float, multiple: int = 8) -> int:
    """`channels * scale` rounded to a multiple, half up, at least one multiple and never below nine tenths of the wish.

    Source: `_make_divisible` of MobileNet, which Paddle's mobile networks took over.
    """
    wish = channels * scale
    rounded = max(multiple, int(wish + multiple / 2) // multiple * multiple)
    return rounded + multiple if rounded < 0.9 * wish else rounded
