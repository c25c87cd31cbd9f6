"""Whether sizes of arrays are those that a program declares: all that running an artifact needs of lowering."""

from __future__ import annotations

import re

_MULTIPLE = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)")


def size_fits(size: int, dim: object, sizes: dict[str, int]) -> bool:
    """Whether an array may have `size` where a program or a spec declares `dim`.

    A number is itself; "n" and "32*h" are any positive size and any positive multiple, the same for the same name:
    `sizes` collects what the names stand for. Other expressions ("2*h + 1") are left to jax, which checks them all.
    """
    if isinstance(dim, int):
        return size == dim
    match = _MULTIPLE.fullmatch(str(dim).replace(" ", ""))
    if size <= 0 or not match:
        return size > 0
    factor = int(match[1] or 1)
    return size % factor == 0 and sizes.setdefault(match[2], size // factor) == size // factor
