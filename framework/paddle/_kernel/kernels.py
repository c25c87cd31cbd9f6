"""Kernels of `paddle._C_ops`: public functions called in the order of the kernel's parameters, and operators of saved
programs. kernels.txt has the first, signatures.txt the order of inputs and settings of the second."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from framework.core.errors import OarError
from framework.interop.weights.pdparams import DTYPES
from framework.paddle._kernel.operators import Lengths, Slots, is_operator, run_operator
from framework.paddle._kernel.signatures import Signature, find_signature
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.legacy_operators import Levels

_ROOT = "framework."
_MODULES = tuple(f"framework.paddle._kernel.{name}" for name in ("layer_kernels", "update_kernels"))
_OPERATORS = {  # kernel -> operator of saved programs, where the names differ
    **{
        f"{mode}_interp": f"{mode}_interp_v2"
        for mode in ("nearest", "bilinear", "bicubic", "linear", "trilinear")
    },
}

_KERNELS = {  # operator of saved programs -> kernel, where programs know the older name alone
    "determinant": "det",
    "diag_v2": "diag",
    "elementwise_fmax": "fmax",
    "elementwise_fmin": "fmin",
    "elementwise_heaviside": "heaviside",
    "gaussian_random": "gaussian",
    "graph_send_recv": "send_u_recv",
    "graph_send_ue_recv": "send_ue_recv",
    "graph_send_uv": "send_uv",
    "reduce_amax": "amax",
    "reduce_amin": "amin",
    "slogdeterminant": "slogdet",
    "softmax_with_cross_entropy": "cross_entropy_with_softmax",
    "yolov3_loss": "yolo_loss",
}


@functools.cache
def _rows() -> dict[str, tuple[str, tuple[str, ...]]]:
    lines = Path(__file__).with_name("kernels.txt").read_text(encoding="utf-8").splitlines()
    rows = ([column.strip() for column in line.split("|")] for line in lines if not line.startswith("#"))
    return {name: (function, tuple(parameters.split())) for name, function, parameters in rows}


@functools.cache
def find_kernel(name: str) -> Callable[..., object] | None:
    """The function that runs a kernel; None where there is none."""
    for module in _MODULES:
        function = vars(importlib.import_module(module)).get(name)
        if getattr(function, "__module__", None) == module:
            return function
    if name in _rows():
        return _of_function(name, *_rows()[name])
    operator = _OPERATORS.get(name, name)
    signature = find_signature(operator)
    if signature is None or not is_operator(operator):
        return None
    return _of_operator(name, operator, signature)


@functools.cache
def find_operator(name: str) -> Callable[..., object] | None:
    """An operator called in the older way, `matmul_v2(x, y, "trans_x", True)`; None where there is none."""
    signature = find_signature(name)
    if signature is None:
        return None
    kernel = None if is_operator(name) else find_kernel(name)
    if kernel is None and not is_operator(name):
        return None
    parameters = [
        parameter.removeprefix("-").partition(":")[0] for parameter in _rows().get(name, ("", ()))[1]
    ]
    keywords = dict(zip((names[0] for names in signature.settings), parameters[len(signature.inputs) :]))

    def run(*args: object) -> object:
        first = next((index for index, value in enumerate(args) if isinstance(value, str)), len(args))
        names = cast("tuple[str, ...]", args[first::2])
        settings = dict(zip(names, args[first + 1 :: 2]))
        if kernel is None:
            return _outputs(name, signature, args[:first], settings)
        return kernel(*args[:first], **{keywords.get(option, option): v for option, v in settings.items()})

    run.__name__ = name
    return run


def setting(value: object, name: str) -> object:
    """A setting as public functions take it: types may be given by Paddle's numbers."""
    if name.endswith("dtype") and isinstance(value, int) and not isinstance(value, bool):
        return str(DTYPES[value]) if value in DTYPES else None
    return value


def _of_function(kernel: str, full: str, parameters: tuple[str, ...]) -> Callable[..., object]:
    """Calls a public function. Parameters: "kernel's name:function's name", "-ignored", "name:*" spread out."""
    home, _, attribute = full.rpartition(".")
    home, _, owner = home.rpartition(".") if home.endswith(".Tensor") else (home, "", "")
    module = importlib.import_module(_ROOT + home)
    function = getattr(getattr(module, owner) if owner else module, attribute)
    names = [parameter.removeprefix("-").partition(":")[0] for parameter in parameters]
    targets = {
        name: p.partition(":")[2] or name for name, p in zip(names, parameters) if not p.startswith("-")
    }

    def run(*args: object, **kwargs: object) -> object:
        values = dict(zip(names, args)) | kwargs
        arguments: dict[str, object] = {
            targets[name]: setting(value, name) for name, value in values.items() if name in targets
        }
        spread = cast("Iterable[object]", arguments.pop("*", []))
        return function(*spread, **arguments)

    run.__name__ = kernel
    return run


def _of_operator(kernel: str, operator: str, signature: Signature) -> Callable[..., object]:
    """Runs an operator of saved programs; the result is one Tensor or, of several outputs, a tuple."""
    count = len(signature.inputs)

    def run(*args: object, **kwargs: object) -> object:
        attrs: dict[str, object] = dict(kwargs)
        tensors: dict[str, object] = {}
        for names, value in zip(signature.settings, args[count:]):
            name, *others = names
            if isinstance(value, Tensor) and others:
                tensors[others[0]] = value
            elif value is not None:
                attrs[name] = value
        return _outputs(operator, signature, args[:count], attrs, tensors)

    run.__name__ = kernel
    return run


def _outputs(
    operator: str,
    signature: Signature,
    inputs: Sequence[object],
    attrs: dict[str, object],
    tensors: Mapping[str, object] = MappingProxyType({}),
) -> object:
    """One Tensor or, of several outputs, a tuple."""
    operands = dict(zip(signature.inputs, inputs)) | dict(tensors)
    slots = {name: _listed(value) for name, value in operands.items() if value is not None}
    results = run_operator(operator, slots, attrs, {name: 1 for name in signature.outputs})
    outputs = [results[name][0] if results.get(name) else None for name in signature.outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _listed(value: object) -> list[Tensor]:
    return cast("list[Tensor]", list(value) if isinstance(value, list | tuple) else [value])


def run_kernel(name: str, slots: Slots, attrs: Mapping[str, object]) -> Slots:
    """The outputs, by slot, of an operator that a kernel runs; a kernel that updates its inputs gives these.

    Raises:
        OarError: no kernel has this name.
    """
    signature, updating = find_signature(name), find_kernel(f"{name}_")
    kernel = find_kernel(_KERNELS.get(name, name)) or updating
    if kernel is None or signature is None:
        raise OarError(
            "the operator is not known",
            received=name,
            allowed="the operators of Paddle listed in docs/graphs.md",
        )
    parameters = _parameters(kernel)
    arguments: list[object] = [
        slots.get(slot) if parameter is not None and _is_listed(parameter) else _operand(slots.get(slot))
        for slot, parameter in itertools.zip_longest(signature.inputs, parameters[: len(signature.inputs)])
    ]
    defaults = [None if p.default is p.empty else p.default for p in parameters[len(arguments) :]]
    for names, default in itertools.zip_longest(signature.settings, defaults[: len(signature.settings)]):
        tensor = next((slots[slot] for slot in names[1:] if slots.get(slot)), None)
        value = setting(attrs.get(names[0], default), names[0])
        arguments.append(value if tensor is None else _operand(tensor))
    while arguments and arguments[-1] is None:
        arguments.pop()
    result = kernel(*arguments)
    if result is None or kernel is updating:
        unwritten = ("Beta1PowOut", "Beta2PowOut") if attrs.get("use_global_beta_pow") else ()
        written = (slot for slot in signature.outputs if slot[:-3] in slots and slot not in unwritten)
        return {slot: slots[slot[:-3]] for slot in written}
    outputs = list(result) if isinstance(result, tuple) else [result]
    return {slot: _listed(one) for slot, one in zip(signature.outputs, outputs) if one is not None}


def has_operator(name: str) -> bool:
    """Whether `run_by_name` knows an operator."""
    if is_operator(name):
        return True
    return (
        find_signature(name) is not None
        and (find_kernel(_KERNELS.get(name, name)) or find_kernel(f"{name}_")) is not None
    )


def run_by_name(
    name: str,
    slots: Slots,
    attrs: Mapping[str, object],
    outputs: Mapping[str, int],
    lengths: Lengths = MappingProxyType({}),
    output_lengths: dict[str, Levels] | None = None,
) -> Slots:
    """The outputs of any operator, by slot; see `run_operator` and `run_kernel`."""
    if is_operator(name):
        return run_operator(name, slots, attrs, outputs, lengths, output_lengths)
    return run_kernel(name, slots, attrs)


def _parameters(kernel: Callable[..., object]) -> list[inspect.Parameter]:
    parameters = inspect.signature(kernel).parameters.values()
    return [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]


def _is_listed(parameter: inspect.Parameter) -> bool:
    """Whether a kernel takes a list of Tensors, be it of one."""
    return str(parameter.annotation).startswith("Sequence[Tensor]")


def _operand(tensors: list[Tensor] | None) -> object:
    if not tensors:
        return None
    return tensors[0] if len(tensors) == 1 else tensors
