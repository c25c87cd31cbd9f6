"""The names of the operators that run here, as `paddle.base.core` lists those of Paddle."""

from __future__ import annotations

from framework.paddle._kernel.kernels import has_operator
from framework.paddle._kernel.signatures import signatures
from framework.paddle.legacy_operators import operator_names

_TYPES = ("float", "double", "int", "int64_t")
_LIBRARIES = ("all", "phi", "fluid")
# What is recorded without a kernel: the ends of programs, blocks and loops.
_RECORDED = ("feed", "fetch", "while", "conditional_block", "pylayer", "run_program", "py_func")


def _names(lib: str) -> list[str]:
    if lib not in _LIBRARIES:
        raise ValueError(f"a library of kernels is one of {', '.join(_LIBRARIES)}, received {lib!r}")
    table = [name for name in signatures() if has_operator(name)]
    older = [name for name in graph_operators() if name not in signatures()] + list(operator_names())
    return sorted({*(table if lib != "fluid" else ()), *(older if lib != "phi" else ())})


def graph_operators() -> list[str]:
    """The operators of saved programs."""
    from framework.interop.graph.paddle import OPERATORS  # many modules

    return list(OPERATORS)


def get_all_op_names(lib: str = "all") -> list[str]:
    """The names of operators: those with a kernel of Paddle 2.6.2's table ("phi"), older ones ("fluid"), or both and
    what is recorded without a kernel ("all")."""
    return sorted({*_names(lib), *(_RECORDED if lib == "all" else ())})


def _get_all_register_op_kernels(lib: str = "all") -> dict[str, list[str]]:
    """Name -> the kernels of it, which are one for each type of values here."""
    kernels = [
        f"{{data_type[{kind}]; data_layout[Undefined(AnyLayout)]; place[Place(cpu)]; library_type[PLAIN]}}"
        for kind in _TYPES
    ]
    return {name: list(kernels) for name in _names(lib)}
