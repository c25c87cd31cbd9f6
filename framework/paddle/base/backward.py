"""paddle.base.backward: gradients of programs by the names that older programs use."""

import re
import warnings

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.base.framework import Block
from framework.paddle.base.framework import grad_var_name as _append_grad_suffix_
from framework.paddle.static.backward import gradients as calc_gradient
from framework.paddle.static.variable import Variable

__all__ = ["_append_grad_suffix_", "_as_list", "calc_gradient"]


def _as_list(x: object) -> list[object]:
    """A list of one thing or of many; None is none."""
    return [] if x is None else list(x) if isinstance(x, list | tuple) else [x]


def _strip_grad_suffix_(name: str) -> str:
    """The name of the variable that a gradient is of: "x" for "x@GRAD", "x@GRAD@RENAME@1" and "grad/grad/x@GRAD"."""
    match = re.search(r"@GRAD+@|@GRAD$", name)
    stem = name if match is None else name[: match.start()]
    return stem.rpartition("grad/")[2]


def _infer_var_data_type_shape_(grad_var_name: str, block: Block) -> None:
    """Give a gradient the shape of its variable; without one, warn that it is of float32."""
    gradient, source = block.var(grad_var_name), block.vars.get(_strip_grad_suffix_(grad_var_name))
    if source is None:
        warnings.warn(
            f"Set grad var: {grad_var_name} dtype to default FP32, since we can't find its related forward var",
            stacklevel=2,
        )
    elif isinstance(gradient, Variable):
        gradient.set_sizes(source.shape)


_complete(__name__)
