"""The operations of a program that carry weights, in one form for ONNX, ProgramDesc and PIR.

A model of ours and a foreign program run the same operations in the same order; walking both lists side by side
carries the weights over, whatever the tensors are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from framework.interop.programs.dataflow import Call, Const, Dataflow, report_damage
from framework.interop.programs.program import Program

# ONNX orders gates i o f c (LSTM) and z r h (GRU); Paddle i f c o and r z c. Entry k is ONNX's block at our place k.
_GATES = {"LSTM": ("lstm", (0, 2, 3, 1)), "GRU": ("gru", (1, 0, 2)), "RNN": ("rnn", (0,))}
_MODES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn", "RNN_RELU": "rnn"}
_BETWEEN_LAYERS = ("transpose", "reshape", "squeeze")


@dataclass(frozen=True, eq=False)
class WeightedOp:
    """One operation with weights in Paddle's names and layouts.

    | kind | arrays |
    |---|---|
    | conv | weight OIHW, bias? |
    | conv_transpose | weight IOHW, bias? |
    | linear | weight [in, out], bias? |
    | batch_norm | weight, bias, _mean, _variance |
    | layer_norm, instance_norm, group_norm | weight?, bias? |
    | embedding | weight [rows, width] |
    | prelu | weight |
    | lstm, gru, rnn | weight_ih_l0 [gates * hidden, in], weight_hh_l0, bias_ih_l0?, bias_hh_l0?, `_reverse`, l1, … |
    | affine | scale?, bias?: a trained factor and summand, mostly of one element |
    | other | what an operation takes that is none of the above, by its slot or `input_<n>` |

    `source` has the names in the file for each key of `arrays`; `node` names the operation in the file.
    """

    kind: str
    arrays: dict[str, np.ndarray]
    source: dict[str, str]
    node: str


def weighted_ops(program: Program) -> list[WeightedOp]:
    """The operations of `program` that carry weights, in execution order.

    A bias added after a convolution or a matrix product belongs to it; layer norm is recognised when an exporter took
    it apart; stacked recurrent layers are one operation, as in Paddle. Constants that no training made (the 1.4142 of
    GELU) are left out. No trained array is dropped silently: what is not understood comes back as "other".

    Raises FormatError when the program was read without its parameters or is damaged.
    """
    return _Finder(Dataflow(program)).run()


class _Finder:
    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.ops: list[WeightedOp] = []
        self._used: set[int] = set()
        self._recurrent: dict[int, int] = {}  # call of an ONNX LSTM -> its place in ops

    def run(self) -> list[WeightedOp]:
        handlers: dict[str, Callable[[Call, int], bool]] = {
            "conv": self._conv,
            "conv_transpose": self._conv,
            "matmul": self._matmul,
            "gemm": self._gemm,
            "batch_norm": self._norm,
            "layer_norm": self._norm,
            "instance_norm": self._norm,
            "group_norm": self._norm,
            "prelu": self._norm,
            "embedding": self._embedding,
            "onnx_rnn": self._onnx_rnn,
            "rnn": self._rnn,
            "mul": self._mul,
            "add": self._add,
        }
        for call in self.flow.calls:
            for inner in self._normalisation(call.out) or ():
                self._used.add(self.flow.maker[inner.out])
        for index, call in enumerate(self.flow.calls):
            if index in self._used:
                continue
            handler = handlers.get(call.op)
            with report_damage(self.flow.program, call.node):
                if handler is None or not handler(call, index):
                    self._rest(call)
        return self.ops

    def _const(self, call: Call, role: str) -> Const | None:
        const = self.flow.consts.get(call.args.get(role, ""))
        return const if const is not None and const.array.dtype.kind in "fcV" else None

    def _report(self, kind: str, call: Call, constants: dict[str, Const | None]) -> bool:
        present = {key: const for key, const in constants.items() if const is not None}
        if present:
            arrays = {key: const.array for key, const in present.items()}
            self.ops.append(
                WeightedOp(kind, arrays, {key: const.label for key, const in present.items()}, call.node.name)
            )
        return bool(present)

    def _operands(self, call: Call) -> tuple[Const, str] | None:
        """The constant and the other operand of a binary call that has exactly one constant."""
        x, y = self._const(call, "x"), self._const(call, "y")
        if x is not None and y is None:
            return x, call.args.get("y", "")
        return (y, call.args.get("x", "")) if y is not None and x is None else None

    def _next_add(self, call: Call, accept: Callable[[Const, Call], bool]) -> Const | None:
        """The constant that is added to the call's result, when nothing else uses that result; the add is taken."""
        users = self.flow.uses.get(call.out, [])
        if len(users) != 1 or users[0] < 0 or self.flow.calls[users[0]].op != "add":
            return None
        add = self.flow.calls[users[0]]
        operands = self._operands(add)
        if operands is None or operands[1] != call.out or not accept(operands[0], add):
            return None
        self._used.add(users[0])
        return operands[0]

    def _conv(self, call: Call, index: int) -> bool:
        weight, bias = self._const(call, "weight"), self._const(call, "bias")
        if weight is None or weight.array.ndim < 3:
            return False
        groups = call.attr("group", "groups", default=1)
        channels = weight.array.shape[0] if call.op == "conv" else weight.array.shape[1] * groups
        if bias is None:
            bias = self._next_add(
                call, lambda const, add: _per_channel(const, add, channels, weight.array.ndim)
            )
        return self._report(call.op, call, {"weight": weight, "bias": _flatten(bias)})

    def _linear(self, call: Call, weight: Const, bias: Const | None) -> bool:
        if bias is None:
            bias = self._next_add(call, lambda const, _: _is_vector(const, weight.array.shape[1]))
        return self._report("linear", call, {"weight": weight, "bias": _flatten(bias)})

    def _matmul(self, call: Call, index: int) -> bool:
        weight = self._const(call, "y")
        if weight is None or weight.array.ndim != 2 or call.args.get("x", "") in self.flow.consts:
            return False
        if call.attr("transpose_y", "transpose_Y", "trans_y"):
            weight = _replace_array(weight, weight.array.T)
        return self._linear(call, _scale(weight, call.attr("alpha", default=1.0)), None)

    def _gemm(self, call: Call, index: int) -> bool:
        weight, bias = self._const(call, "weight"), self._const(call, "bias")
        if weight is None or weight.array.ndim != 2:
            return False
        if call.attr("transB"):
            weight = _replace_array(weight, weight.array.T)
        if bias is not None:
            bias = _scale(bias, call.attr("beta", default=1.0))
        return self._linear(call, _scale(weight, call.attr("alpha", default=1.0)), bias)

    def _norm(self, call: Call, index: int) -> bool:
        names = {"batch_norm": ("weight", "bias", "_mean", "_variance"), "prelu": ("weight",)}
        roles = names.get(call.op, ("weight", "bias"))
        return self._report(call.op, call, {role: _flatten(self._const(call, role)) for role in roles})

    def _embedding(self, call: Call, index: int) -> bool:
        weight = self._const(call, "weight")
        if weight is None or weight.array.ndim != 2 or call.attr("axis", default=0) != 0:
            return False
        return self._report("embedding", call, {"weight": weight})

    def _mul(self, call: Call, index: int) -> bool:
        operands = self._operands(call)
        if operands is None:
            return False
        const, other = operands
        if const.array.size > 1 and self._normalisation(other):
            size = const.array.size
            bias = self._next_add(call, lambda summand, _: _is_vector(summand, size))
            return self._report("layer_norm", call, {"weight": _flatten(const), "bias": _flatten(bias)})
        if not const.trained:
            return False
        bias = self._next_add(call, lambda summand, _: summand.trained)
        return self._report("affine", call, {"scale": const, "bias": bias})

    def _add(self, call: Call, index: int) -> bool:
        operands = self._operands(call)
        return bool(
            operands is not None
            and operands[0].trained
            and self._report("affine", call, {"bias": operands[0]})
        )

    def _normalisation(self, value: str) -> tuple[Call, Call] | None:
        """Square and sum with eps of a value that is (x - mean) / sqrt(mean((x - mean)^2) + eps) in single steps."""
        producers = self.flow.made_by
        if not (div := producers(value, "div")) or not (root := producers(div.args.get("y", ""), "sqrt")):
            return None
        if not (centred := producers(div.args.get("x", ""), "sub")) or not (
            add := producers(root.args.get("x", ""), "add")
        ):
            return None
        mean = producers(centred.args.get("y", ""), "reduce_mean")
        operands = self._operands(add)
        variance = producers(operands[1], "reduce_mean") if operands else None
        if mean is None or mean.args.get("x") != centred.args.get("x") or variance is None:
            return None
        squared = variance.args.get("x", "")
        square = producers(squared, "pow") or producers(squared, "mul")
        if square is None or square.args.get("x") != centred.out:
            return None
        return (square, add) if square.op == "pow" or square.args.get("y") == centred.out else None

    def _onnx_rnn(self, call: Call, index: int) -> bool:
        w, r, b = self._const(call, "w"), self._const(call, "r"), self._const(call, "b")
        if w is None or r is None or w.array.ndim != 3 or r.array.ndim != 3:
            return False
        kind, order = _GATES[call.node.op]
        directions, rows, hidden = r.array.shape
        if rows != len(order) * hidden or w.array.shape[:2] != (directions, rows):
            return False
        if b is not None and b.array.shape != (directions, 2 * rows):
            return False
        first = self._first_layer(call, kind, directions, hidden)
        layer = (
            0 if first is None else sum("weight_hh" in key for key in self.ops[first].arrays) // directions
        )
        constants: dict[str, Const | None] = {}
        for direction in range(directions):
            end = f"l{layer}" + ("_reverse" if direction else "")
            constants[f"weight_ih_{end}"] = self._gates(w, w.array[direction], order)
            constants[f"weight_hh_{end}"] = self._gates(r, r.array[direction], order)
            if b is not None:
                constants[f"bias_ih_{end}"] = self._gates(b, b.array[direction, :rows], order)
                constants[f"bias_hh_{end}"] = self._gates(b, b.array[direction, rows:], order)
        if first is None:
            first = len(self.ops)
            self._report(kind, call, constants)
        else:
            self.ops[first].arrays.update({key: const.array for key, const in constants.items() if const})
            self.ops[first].source.update({key: const.label for key, const in constants.items() if const})
        self._recurrent[index] = first
        return True

    def _gates(self, const: Const, array: np.ndarray, order: tuple[int, ...]) -> Const:
        blocks = np.split(array, len(order))
        array = np.concatenate([blocks[place] for place in order])
        # Exporters join the tensors of both directions and both biases; the source is the one with these numbers.
        for name in const.names:
            if np.array_equal(self.flow.consts[name].array.reshape(-1), array.reshape(-1)):
                return Const(array, (name,), const.trained)
        return Const(array, const.names, const.trained)

    def _first_layer(self, call: Call, kind: str, directions: int, hidden: int) -> int | None:
        """The place in ops of the recurrent operation whose result is this one's input, if it is of the same make."""
        value = call.args.get("x", "")
        while value in self.flow.maker:
            index = self.flow.maker[value]
            if index in self._recurrent:
                first = self._recurrent[index]
                op = self.ops[first]
                same = op.kind == kind and op.arrays["weight_hh_l0"].shape[1] == hidden
                same = same and ("weight_hh_l0_reverse" in op.arrays) == (directions == 2)
                return first if same and self.flow.calls[index].out == value else None
            if self.flow.calls[index].op not in _BETWEEN_LAYERS:
                return None
            value = self.flow.calls[index].args.get("x", "")
        return None

    def _rnn(self, call: Call, index: int) -> bool:
        consts = [self.flow.consts.get(value) for value in call.lists.get("weights", ())]
        directions = 2 if call.attr("is_bidirec") else 1
        cells = call.attr("num_layers", default=1) * directions
        if len(consts) != 4 * cells or None in consts:
            return False
        constants: dict[str, Const | None] = {}
        for cell in range(cells):  # the list has the weights of all cells, then their biases
            end = f"l{cell // directions}" + ("_reverse" if cell % directions else "")
            for offset in (2 * cell, 2 * (cells + cell)):
                what = "weight" if offset < 2 * cells else "bias"
                constants |= {f"{what}_ih_{end}": consts[offset], f"{what}_hh_{end}": consts[offset + 1]}
        return self._report(_MODES.get(call.attr("mode", default="LSTM"), "rnn"), call, constants)

    def _rest(self, call: Call) -> None:
        values = dict(call.args)
        for role, members in call.lists.items():
            values |= {f"{role}_{place}": value for place, value in enumerate(members)}
        constants = {}
        for role, value in values.items():
            const = self.flow.consts.get(value)
            if const is None or const.array.dtype.kind not in "fcV":
                continue
            if const.trained or (call.op == "matmul" and const.array.size > 1):
                constants[role] = const
        self._report("other", call, constants)


def _replace_array(const: Const, array: np.ndarray) -> Const:
    return Const(np.ascontiguousarray(array), const.names, const.trained)


def _scale(const: Const, factor: float) -> Const:
    return const if factor == 1 else _replace_array(const, const.array * const.array.dtype.type(factor))


def _flatten(const: Const | None) -> Const | None:
    return None if const is None else Const(const.array.reshape(-1), const.names, const.trained)


def _per_channel(const: Const, add: Call, channels: int, rank: int) -> bool:
    """Whether a constant adds one number to each channel of an NCHW tensor of this rank."""
    shape = const.array.shape
    axis = add.attr("axis", default=-1)
    if axis > 0:  # ProgramDesc lines the second operand up from this axis on
        shape = shape + (1,) * (rank - axis - len(shape))
    padded = (1,) * (rank - len(shape)) + shape
    if padded != (1, channels) + (1,) * (rank - 2):
        return False
    return channels > 1 or const.trained or len(shape) == rank


def _is_vector(const: Const, size: int) -> bool:
    shape = const.array.shape
    return const.array.size == size and shape[-1:] == (size,) and (size > 1 or const.trained)
