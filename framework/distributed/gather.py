"""Parameters that are divided among devices (`fsdp`): whole while they are computed with, and not in between.

Left alone, automatic differentiation keeps what the forward pass gathered until the backward pass has used it, so that
in the middle of a step every device has the whole model after all (DeepSpeed's ZeRO-3 and PyTorch's FSDP gather twice
for the same reason).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

Function = TypeVar("Function", bound=Callable[..., Any])

# What turns a gathered parameter into the form that a product takes; a gather that is not kept, but its bfloat16 copy,
# would save nothing.
_FORMS = frozenset({"convert_element_type", "transpose", "reshape", "copy"})


def gather_again(function: Function, shapes: frozenset[tuple[int, ...]]) -> Function:
    """`function` with the same values and gradients, whose backward pass gathers divided parameters again.

    All that is computed from samples is kept as ever; parameters that `with_sharding_constraint` made whole are not,
    nor are their casts and transposes.

    Args:
        shapes: Those of the divided parameters.
    """

    def keep(primitive: jax.extend.core.Primitive, *avals: jax.core.AbstractValue, **_: object) -> bool:
        if primitive.name == "sharding_constraint":
            return False
        return not (primitive.name in _FORMS and getattr(avals[0], "shape", None) in shapes)

    return jax.checkpoint(function, policy=keep)
