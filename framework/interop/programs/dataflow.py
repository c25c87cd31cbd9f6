"""A program as calls of one vocabulary, whatever format it came from: the input of `weighted_ops`.

Copies (Identity, casts, dropout at inference) are left out, reshaped or sliced parameters become constants again, and
every value has one maker.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.core.errors import FormatError
from framework.interop.programs import onnx_types
from framework.interop.programs.program import Node, Program, TensorSpec
from framework.interop.weights import pdparams as paddle

# op of the file -> (our word, roles of its inputs by position)
_POSITIONAL: dict[str, tuple[str, str]] = {
    "Conv": ("conv", "x weight bias"),
    "ConvTranspose": ("conv_transpose", "x weight bias"),
    "Gemm": ("gemm", "x weight bias"),
    "MatMul": ("matmul", "x y"),
    "BatchNormalization": ("batch_norm", "x weight bias _mean _variance"),
    "LayerNormalization": ("layer_norm", "x weight bias"),
    "InstanceNormalization": ("instance_norm", "x weight bias"),
    "GroupNormalization": ("group_norm", "x weight bias"),
    "PRelu": ("prelu", "x weight"),
    "Gather": ("embedding", "weight x"),
    **{op: ("onnx_rnn", "x w r b") for op in ("LSTM", "GRU", "RNN")},
    **{op: (op.lower(), "x y") for op in ("Add", "Mul", "Sub", "Div", "Pow")},
    "Sqrt": ("sqrt", "x"),
    "ReduceMean": ("reduce_mean", "x axes"),
    **{op: ("copy", "x") for op in ("Identity", "Dropout")},
    "Cast": ("cast", "x"),
    "Reshape": ("reshape", "x shape"),
    "Unsqueeze": ("unsqueeze", "x axes"),
    "Squeeze": ("squeeze", "x axes"),
    "Transpose": ("transpose", "x"),
    "Slice": ("slice", "x starts ends axes steps"),
    "Concat": ("concat", ""),
    **{f"pd_op.{op}": ("conv", "x weight") for op in ("conv2d", "conv3d", "depthwise_conv2d")},
    **{
        f"pd_op.{op}": ("conv_transpose", "x weight")
        for op in ("conv2d_transpose", "depthwise_conv2d_transpose")
    },
    "pd_op.matmul": ("matmul", "x y"),
    "pd_op.batch_norm": ("batch_norm", "x _mean _variance weight bias"),
    **{f"pd_op.{op}": (op, "x weight bias") for op in ("layer_norm", "instance_norm", "group_norm")},
    "pd_op.prelu": ("prelu", "x weight"),
    "pd_op.embedding": ("embedding", "x weight"),
    "pd_op.rnn": ("rnn", "x pre_state weights"),
    "pd_op.add": ("add", "x y"),
    "pd_op.multiply": ("mul", "x y"),
    "pd_op.subtract": ("sub", "x y"),
    "pd_op.divide": ("div", "x y"),
    **{f"pd_op.{op}": ("copy", "x") for op in ("assign", "share_data", "dropout")},
    "pd_op.cast": ("cast", "x"),
    "pd_op.reshape": ("reshape", "x shape"),
    "pd_op.unsqueeze": ("unsqueeze", "x axes"),
    "pd_op.squeeze": ("squeeze", "x axes"),
    "pd_op.transpose": ("transpose", "x"),
    "pd_op.full_int_array": ("integers", ""),
    "builtin.combine": ("combine", ""),
}
# op of a ProgramDesc -> (our word, role of each slot)
_ADD = {"X": "x", "Y": "y"}
_CONV = {"Input": "x", "Filter": "weight", "Bias": "bias"}
_NORM = {"X": "x", "Scale": "weight", "Bias": "bias", "Mean": "_mean", "Variance": "_variance"}
_SLOTS: dict[str, tuple[str, dict[str, str]]] = {
    **{op: ("conv", _CONV) for op in ("conv2d", "conv3d", "depthwise_conv2d")},
    **{op: ("conv_transpose", _CONV) for op in ("conv2d_transpose", "depthwise_conv2d_transpose")},
    **{op: ("matmul", _ADD) for op in ("mul", "matmul", "matmul_v2")},
    "fc": ("gemm", {"Input": "x", "W": "weight", "Bias": "bias"}),
    **{op: ("batch_norm", _NORM) for op in ("batch_norm", "sync_batch_norm")},
    **{op: (op, _NORM) for op in ("layer_norm", "instance_norm", "group_norm")},
    "prelu": ("prelu", {"X": "x", "Alpha": "weight"}),
    **{op: ("embedding", {"Ids": "x", "W": "weight"}) for op in ("lookup_table", "lookup_table_v2")},
    "rnn": ("rnn", {"Input": "x", "WeightList": "weights"}),
    "elementwise_add": ("add", _ADD),
    "elementwise_mul": ("mul", _ADD),
    "elementwise_sub": ("sub", _ADD),
    "elementwise_div": ("div", _ADD),
    **{op: ("copy", {"X": "x"}) for op in ("assign", "share_data", "dropout")},
    "cast": ("cast", {"X": "x"}),
    **{
        f"{op}{end}": (op, {"X": "x"})
        for op in ("reshape", "unsqueeze", "squeeze", "transpose")
        for end in ("", "2")
    },
}
_MAIN_SLOTS = ("Out", "Output", "Y")
_FOLDED = ("copy", "cast", "reshape", "unsqueeze", "squeeze", "transpose", "slice", "concat")

# Names that exporters invent for constants of their own. A parameter keeps its name through every exporter we know,
# except where it was folded with something, and folded values are recognised by the operation that uses them.
INVENTED_NAME = re.compile(
    r"(?<![a-z])const|(^|[./])helper\.|^auto\.|^p2o\.|^onnx::|^/|^(val_)?\d*$", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Const:
    """A known array: `names` are the parameters it was made of, `trained` whether it is one and no exporter's own."""

    array: np.ndarray
    names: tuple[str, ...]
    trained: bool

    @property
    def label(self) -> str:
        return ", ".join(self.names)


@dataclass(frozen=True, eq=False)
class Call:
    """One operation in our words: values by role, `out` its main result."""

    op: str
    args: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]
    out: str
    node: Node

    def attr(self, *names: str, default: object = None) -> Any:
        """The first attribute present; the formats spell most of them differently."""
        for name in names:
            if self.node.attrs.get(name) is not None:
                return self.node.attrs[name]
        return default


@contextlib.contextmanager
def report_damage(program: Program, node: Node) -> Iterator[None]:
    """Turn what a damaged attribute or shape makes Python and numpy raise into a FormatError about the node."""
    try:
        yield
    except FormatError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise FormatError(
            f"the operation {node.name!r} ({node.op}) does not fit its weights or attributes",
            where=program.name,
            received=f"{type(error).__name__}: {str(error)[:200]}",
            fix="export the model again",
        ) from error


class Dataflow:
    """`calls` in execution order, `consts` by value, `uses` and `maker` as indices into `calls`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.calls: list[Call] = []
        self.consts: dict[str, Const] = {}
        self.uses: dict[str, list[int]] = defaultdict(list)
        self.maker: dict[str, int] = {}
        # Name in the file -> value; a name can be written twice in a ProgramDesc.
        self._current: dict[str, str] = {}
        self._writes: dict[str, int] = defaultdict(int)
        self._lists: dict[str, tuple[str, ...]] = {}
        total = 0
        for name, array in program.parameters.items():
            if isinstance(array, TensorSpec):
                raise FormatError(
                    "the program was read without its parameters",
                    where=program.name,
                    received=f"only the shape of {name!r}",
                    fix="give the parameter file: load_program(path, params)",
                )
            trained = program.format != "onnx" or INVENTED_NAME.search(name) is None
            self.consts[name] = Const(array, (name,), trained)
            total += array.size
        # Elements that folding may make; honest programs make less than one copy.
        self._budget = 4 * total + (1 << 20)
        for node in program.walk():
            with report_damage(program, node):
                self._add(node)
        for spec in program.outputs:
            self.uses[self._value(spec.name)].append(-1)

    def made_by(self, value: str, op: str) -> Call | None:
        """The call of kind `op` that makes the value, if that is what makes it."""
        call = self.calls[self.maker[value]] if value in self.maker else None
        return call if call is not None and call.op == op else None

    def _value(self, name: str) -> str:
        return self._current.get(name, name)

    def _define(self, name: str) -> str:
        self._writes[name] += 1
        value = name if self._writes[name] == 1 else f"{name}'{self._writes[name]}"
        self._current[name] = value
        return value

    def _add(self, node: Node) -> None:
        op, roles = self._roles(node)
        values = [self._value(name) if name else "" for name in node.inputs]
        grouped: dict[str, list[str]] = defaultdict(list)
        for role, value in zip(roles, values):
            grouped[role].append(value)
        args = {role: group[0] for role, group in grouped.items() if len(group) == 1 and group[0]}
        lists = {role: tuple(group) for role, group in grouped.items() if len(group) > 1}
        lists |= {role: self._lists[value] for role, value in args.items() if value in self._lists}
        outputs = [name for name in node.outputs if name and name not in self.program.parameters]
        main = _main_output(node)
        call = Call(op, args, lists, main, node)
        if op in ("copy", "cast") and main and args.get("x", "") not in self.consts and "x" in args:
            self._current[main] = args["x"]
            return
        if op == "combine":
            self._lists[self._define(main)] = tuple(values)
            return
        if main in outputs and (const := self._fold(call, values)) is not None:
            self.consts[self._define(main)] = const
            return
        index = len(self.calls)
        for value in {value for entry in (args.values(), *lists.values()) for value in entry}:
            self.uses[value].append(index)
        defined = {name: self._define(name) for name in outputs}
        self.maker.update(dict.fromkeys(defined.values(), index))
        self.calls.append(Call(op, args, lists, defined.get(main, main), node))

    def _roles(self, node: Node) -> tuple[str, list[str]]:
        if self.program.format == "pdmodel":
            op, slots = _SLOTS.get(node.op, (node.op, {}))
            return op, [slots.get(slot, slot) for slot in node.input_slots]
        op, roles = _POSITIONAL.get(node.op.rstrip("_"), (node.op, ""))
        names = roles.split()
        return op, [names[i] if i < len(names) else f"input_{i}" for i in range(len(node.inputs))]

    # Constant folding: only what moves or copies numbers -------------------------------------------------------------

    def _fold(self, call: Call, values: list[str]) -> Const | None:
        if call.op == "integers":
            return Const(np.asarray(call.attr("value", default=()), np.int64), (), False)
        constant = all(value in self.consts for value in values if value)
        if call.op not in _FOLDED or not values or not constant:
            return None
        inputs = [self.consts[value] for value in values if value]
        if sum(const.array.size for const in inputs) > self._budget:
            raise FormatError(
                "the constants of the program multiply far beyond its parameters",
                where=self.program.name,
                received=f"at {call.node.name!r}",
                fix="do not use this file: no exporter writes such a program",
            )
        roles = {role: self.consts[value].array for role, value in call.args.items()}
        array = _fold_arrays(call, roles, [const.array for const in inputs], self.program.format)
        if not any(np.may_share_memory(array, const.array) for const in inputs):
            self._budget -= array.size
        sources = inputs if call.op == "concat" else inputs[:1]
        names = dict.fromkeys(name for const in sources for name in const.names)
        return Const(array, tuple(names), all(const.trained for const in sources))


def _main_output(node: Node) -> str:
    for slot, name in zip(node.output_slots, node.outputs):
        if slot in _MAIN_SLOTS:
            return name
    return node.outputs[0] if node.outputs and not node.output_slots else ""


def _axes(call: Call, roles: Mapping[str, np.ndarray], *names: str) -> tuple[int, ...] | None:
    values = roles[names[0]].ravel().tolist() if names[0] in roles else call.attr(*names)
    return None if values is None else tuple(int(value) for value in values)


def _fold_arrays(
    call: Call, roles: Mapping[str, np.ndarray], inputs: list[np.ndarray], form: str
) -> np.ndarray:
    """What an operation of `_FOLDED` makes of constants; `form` is the program's format."""
    match call.op:
        case "concat":
            return np.concatenate(inputs, call.attr("axis", default=0))
        case "cast":
            code = call.attr("to", "out_dtype", "dtype")  # a number, in PIR a name
            table = (
                onnx_types.DTYPES
                if form == "onnx"
                else paddle.DTYPES | {d.name: d for d in paddle.DTYPES.values()}
            )
            return roles["x"].astype(table[code], copy=False)
        case "reshape":
            x, shape = roles["x"], _axes(call, roles, "shape")
            if shape is None:
                raise ValueError("no shape is given")
            keep_zero = bool(call.attr("allowzero"))
            return x.reshape([x.shape[i] if n == 0 and not keep_zero else n for i, n in enumerate(shape)])
        case "unsqueeze":
            return np.expand_dims(roles["x"], _axes(call, roles, "axes") or ())
        case "squeeze":
            return np.squeeze(roles["x"], _axes(call, roles, "axes") or None)
        case "transpose":
            return np.transpose(roles["x"], _axes(call, roles, "perm", "axis"))
        case "slice":
            return _slice(call, roles)
    return roles["x"]  # a copy


def _slice(call: Call, roles: Mapping[str, np.ndarray]) -> np.ndarray:
    starts, ends = _axes(call, roles, "starts") or (), _axes(call, roles, "ends") or ()
    axes = _axes(call, roles, "axes") or tuple(range(len(starts)))
    steps = _axes(call, roles, "steps") or (1,) * len(starts)
    index = [slice(None)] * roles["x"].ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 1:
            raise ValueError("a slice with a negative step")
        index[axis] = slice(start, end, step)
    return roles["x"][tuple(index)]
