"""Printing variables of a static program."""

from __future__ import annotations

import jax

from framework.paddle._kernel.dispatch import Array, operation


@operation(name="print")
def printed(x: Array, message: str) -> Array:
    """x, printed when the program runs."""
    jax.debug.print(message.replace("{", "{{").replace("}", "}}") + " {x}", x=x)
    return x
