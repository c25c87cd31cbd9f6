"""GraphLayer: a program of another framework as a Layer."""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import fits_int32
from framework.core.errors import FormatError, InputError, OarError, ShapeError, did_you_mean
from framework.core.types import PyTree
from framework.interop.graph.operator import Call, Operator
from framework.interop.graph.rows import RowChain, split_rows, to_host
from framework.interop.graph.values import (
    MAX_ELEMENTS,
    MAX_KNOWN,
    Item,
    Value,
    align,
    check_broadcast,
    count,
    device_type,
    is_known,
    is_symbolic,
    is_text,
    reshape,
    shape_of,
    to_jax,
)
from framework.interop.graph.wide import (
    as_double_value,
    is_double,
    narrow_floats,
    runs_in_doubles,
    runs_wide,
    widen_items,
)
from framework.interop.programs.program import Node, Program, TensorSpec
from framework.nn import initializer as I
from framework.nn.layer import Layer, ParamAttr

_PASSED_ON = ("jax.errors", "jax._src")  # modules of errors about traces, which say what they are themselves


@dataclass(frozen=True)
class Role:
    """What becomes of an initializer: a parameter, a buffer or (neither) a constant of the program."""

    name: str  # in the layer
    kind: str  # parameter, buffer
    trainable: bool = True


@dataclass(frozen=True, eq=False)
class Graph:
    """All of a layer that is no array: the program, its operators, and which initializers the layer holds."""

    program: Program
    operators: Mapping[str, Operator]
    roles: Mapping[str, Role]
    constants: Mapping[str, np.ndarray]
    last_use: Mapping[int, tuple[str, ...]]  # node of the main graph -> names that nobody reads after it
    wide: frozenset[str] = frozenset()  # values that arithmetic computes in 64 bits
    doubles: frozenset[str] = frozenset()  # values that are float64, or made of such


class GraphLayer(Layer):
    """A program read from a file. Call it with its inputs in the graph's order, or by name.

    Inputs and outputs have the graph's layout (for images mostly [N, C, H, W]) and 32 bits where the graph says 64, but
    for integers that the graph computes with. One output comes as an array, several as a tuple in the order of
    `outputs`. Sequences are lists, text is numpy's.

    `inputs` and `outputs` are the TensorSpecs of the file, `program` is what was read.
    """

    def __init__(self, graph: Graph, conv_kernels: Sequence[str] = ()) -> None:
        super().__init__()
        self.graph = graph
        self.conv_kernels = tuple(conv_kernels)
        for name, role in graph.roles.items():
            array = graph.program.parameters[name]
            assert isinstance(array, np.ndarray)
            if role.kind == "buffer":
                self.register_buffer(role.name, to_jax(array))
                continue
            attr, values = ParamAttr(trainable=role.trainable), I.Assign(array)
            dtype = device_type(array.dtype)
            parameter = self.create_parameter(array.shape, attr, dtype, default_initializer=values)
            self.add_parameter(role.name, parameter)

    @property
    def program(self) -> Program:
        return self.graph.program

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self.graph.program.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self.graph.program.outputs

    def forward(self, *args: PyTree, **named: PyTree) -> PyTree:
        """The outputs for the inputs in order, or by name. Raises: InputError, where they are not the graph's."""
        results = Run(self).outputs(self._bind(args, named))
        arrays = tuple(_to_output(item) for item in results)
        return arrays[0] if len(arrays) == 1 else arrays

    def run_nodes(
        self,
        numbers: Sequence[int],
        values: Mapping[str, Item],
        wanted: Sequence[str],
        on_host: bool = False,
        chains: Sequence[RowChain] = (),
        in_doubles: bool = False,
    ) -> dict[str, PyTree]:
        """Some of the program's nodes, with what they need besides weights and constants; gives `wanted` by name.

        `in_doubles`: what is float64 in the file is computed so, of weights as the file has them.

        `on_host`: values are numpy's between the nodes, so that sizes which differ from call to call compile nothing,
        and what works row by row runs on a few numbers of rows: `chains` together.
        """
        items = {
            name: _to_item(value, TensorSpec(name, (), ""), self.program.name)
            for name, value in values.items()
        }
        results = Run(self, on_host, in_doubles).values(numbers, items, wanted, chains)
        doubles = self.graph.doubles if in_doubles else frozenset()
        return {
            name: _to_output(as_double_value(item) if name in doubles and is_double(item) else item)
            for name, item in results.items()
        }

    def _bind(self, args: tuple, named: Mapping[str, PyTree]) -> dict[str, Item]:
        names = [spec.name for spec in self.inputs]
        bound = dict(zip(names, args)) | dict(named)
        unknown = [name for name in named if name not in names or name in names[: len(args)]]
        if len(args) > len(names) or unknown or len(bound) < len(names):
            raise InputError(
                "the arguments do not match the inputs of the graph",
                where=self.program.name,
                received=f"{len(args)} by position, {list(named)} by name",
                allowed=f"each of {names} once",
                fix=did_you_mean(unknown[0], names) if unknown else None,
            )
        return {spec.name: _to_item(bound[spec.name], spec, self.program.name) for spec in self.inputs}

    def extra_repr(self) -> str:
        operators = Counter(node.op for node in self.program.walk())
        return f"{self.program.name}, {sum(operators.values())} nodes of {len(operators)} operators"


def _to_item(value: PyTree, spec: TensorSpec, file: str) -> Item:
    if value is None or isinstance(value, list | tuple):
        open_spec = TensorSpec(spec.name, (), "")
        return None if value is None else [_to_item(item, open_spec, file) for item in value]
    if not isinstance(value, jax.Array) and np.asarray(value).dtype.kind in "OSU":
        return np.asarray(value).astype(np.str_)
    array = value if isinstance(value, jax.Array) else to_jax(np.asarray(value))
    if spec.shape and len(spec.shape) != array.ndim:
        raise ShapeError(
            "an input of the graph has another number of axes",
            where=f"{file}, input {spec.name!r}",
            received=f"shape {array.shape}",
            allowed=f"{len(spec.shape)} axes: {spec.shape}",
        )
    return Value.of(array)


def _to_output(item: Item | dict) -> PyTree:
    if isinstance(item, list):
        return [_to_output(one) for one in item]
    if item is None or isinstance(item, dict) or is_text(item):
        return item
    if isinstance(item, Value) and item.dtype in (np.int64, np.uint64, np.float64):
        with jax.enable_x64(True):
            return to_jax(item)
    if isinstance(item, np.ndarray) and item.dtype == np.int64 and not fits_int32(item):
        with jax.enable_x64(True):
            return jnp.asarray(item)
    return to_jax(item)


def _to_argument(item: Item) -> PyTree:
    """A value for a compiled function, which takes numpy's arrays of 32 bits faster than they become jax's."""
    return item if isinstance(item, np.ndarray) and item.dtype == np.float32 else _to_output(item)


class Scope(dict[str, Item]):
    """The values of one graph by name; what it does not have stands in the graph around it."""

    def __init__(self, values: Mapping[str, Item], outer: Scope | None = None) -> None:
        super().__init__(values)
        self.outer = outer

    def __missing__(self, name: str) -> Item:
        if self.outer is None:
            raise KeyError(name)
        return self.outer[name]


class _Held(Scope):
    """Constants and weights, taken from the layer where a node reads them: a pass may read few of many."""

    def __init__(self, layer: GraphLayer, graph: Graph, doubles: Collection[str]) -> None:
        super().__init__({})
        self._layer, self._graph, self._doubles = layer, graph, doubles

    def __missing__(self, name: str) -> Item:
        role = self._graph.roles.get(name)
        if role is None:
            return self._graph.constants[name]
        array = self._graph.program.parameters[name]
        if name in self._doubles and isinstance(array, np.ndarray) and is_double(array):
            return array
        return Value.of(
            getattr(self._layer, role.name)
        )  # not kept: a body that is traced reads a trace's own


class Run:
    """One pass through a graph."""

    def __init__(self, layer: GraphLayer, on_host: bool = False, in_doubles: bool = False) -> None:
        self._layer, self._graph, self._on_host = layer, layer.graph, on_host
        self._doubles = self._graph.doubles if in_doubles else frozenset()
        self.training = layer.training and not layer.statistics_frozen
        self._shapes: dict[str, str] = {}

    def outputs(self, inputs: Mapping[str, Item]) -> list[Item]:
        """The outputs of the main graph."""
        scope, program = self._scope(inputs), self._graph.program
        self._nodes(program.nodes, scope, main=True)
        return [scope[spec.name] for spec in program.outputs]

    def values(
        self,
        numbers: Sequence[int],
        inputs: Mapping[str, Item],
        wanted: Sequence[str],
        chains: Sequence[RowChain] = (),
    ) -> dict[str, Item]:
        """Values by name, after some of the nodes of the main graph."""
        scope = self._scope(
            {name: to_host(item) for name, item in inputs.items()} if self._on_host else inputs
        )
        chain_at = {chain.numbers[0]: chain for chain in chains}
        done: set[int] = set()
        with np.errstate(all="ignore"):
            for number in numbers:
                if number in done:
                    continue
                chain = chain_at.get(number)
                rows = None if chain is None or chain.source in self._doubles else scope[chain.source]
                if (
                    chain is None
                    or not isinstance(rows, np.ndarray)
                    or rows.ndim < 2
                    or rows.dtype.kind != "f"
                ):
                    self._run_nodes([self._graph.program.nodes[number]], scope)
                    continue
                scope[chain.result] = chain.run(rows)
                done.update(chain.numbers)
        return {name: scope[name] for name in wanted}

    def _scope(self, inputs: Mapping[str, Item]) -> Scope:
        return Scope({"": None, **inputs}, _Held(self._layer, self._graph, self._doubles))

    def run_body(self, call: Call, body: int, inputs: Sequence[Item]) -> list[Item]:
        """The outputs of one of the node's bodies for these inputs."""
        signature = call.node.signatures[body]
        if len(inputs) != len(signature.inputs):
            raise call.error(
                f"the body {signature.attribute!r} takes other inputs",
                received=f"{len(inputs)} values",
                allowed=f"{len(signature.inputs)}: {list(signature.inputs)}",
            )
        assert isinstance(call.scope, Scope)
        scope = Scope(dict(zip(signature.inputs, inputs)), call.scope)
        self._nodes(call.node.blocks[body], scope)
        return [scope[name] for name in signature.outputs]

    def copy_for_trace(self) -> Run:
        """Another pass, whose values between nodes may be those of a trace."""
        return Run(self._layer, in_doubles=bool(self._doubles))

    def set_buffer(self, name: str, value: jax.Array) -> None:
        """A new value of the buffer that an initializer became."""
        role = self._graph.roles.get(name)
        if role is not None and role.kind == "buffer":
            setattr(self._layer, role.name, value)

    def _nodes(self, nodes: Sequence[Node], scope: Scope, main: bool = False) -> None:
        with np.errstate(all="ignore"):
            self._run_nodes(nodes, scope, main)

    def _run_nodes(self, nodes: Sequence[Node], scope: Scope, main: bool = False) -> None:
        for number, node in enumerate(nodes):
            results = self._node(node, scope)
            for name, result in zip(node.outputs, results):
                if name:
                    scope[name] = result
            if len(results) < len(node.outputs) and any(node.outputs[len(results) :]):
                raise FormatError(
                    "a node has more outputs than its operator gives here",
                    where=f"{self._graph.program.name}, node {node.name!r} ({node.op})",
                    received=f"{len(node.outputs)} outputs",
                    allowed=len(results),
                    fix="export the model in its inference mode",
                )
            for name in self._graph.last_use.get(number, ()) if main else ():
                scope.pop(name, None)

    def _compiled(self, node: Node, operator: Operator, call: Call) -> Callable[..., jax.Array]:
        """The node as a compiled function of arrays, kept as long as the graph."""
        functions = _by_node.setdefault(self._graph, {})
        if id(node) not in functions:

            def run(*arrays: jax.Array | None) -> PyTree:
                return apply(operator, call, [None if a is None else Value.of(a) for a in arrays])

            functions[id(node)] = jax.jit(lambda *arrays: _first_array(run(*arrays)))
        return functions[id(node)]

    def _node(self, node: Node, scope: Scope) -> Sequence[Item]:
        domain = node.op.rpartition(".")[0]
        operator = self._graph.operators[node.op]
        call = Call(node, self._graph.program.domains.get(domain, 1), self, scope)
        inputs: list[Item] = []
        try:
            inputs.extend(scope[name] for name in node.inputs)
            if node.signatures and self._doubles:  # a body's node may lie outside of the block with 64 bits
                inputs = [as_double_value(item) if is_double(item) else item for item in inputs]
            in_doubles = runs_in_doubles(node, inputs, self._doubles)
            rows = split_rows(node, call.version, inputs) if self._on_host and not in_doubles else None
            if rows is not None:
                result = rows.run(self._compiled(node, operator, call), _to_argument)
            elif in_doubles:
                with jax.enable_x64(True):
                    result = apply(operator, call, widen_items(node, inputs))
            elif runs_wide(node, inputs, self._graph.wide):
                with jax.enable_x64(True):
                    result = apply(operator, call, widen_items(node, inputs))
                    result = tuple(map(narrow_floats, result if isinstance(result, tuple) else (result,)))
            else:
                result = apply(operator, call, inputs)
            results = result if isinstance(result, tuple) else (result,)
            results = tuple(map(to_host, results)) if self._on_host else results
            for item in results:
                if not isinstance(item, list) and item is not None:
                    _check_size(item, call)
        except Exception as error:
            explained = _explain(error, call, inputs, self._graph.program.name)
            if explained is error:
                raise
            raise explained from error
        return results


def _first_array(result: PyTree) -> jax.Array:
    return to_jax(result[0] if isinstance(result, tuple) else result)


_by_node: weakref.WeakKeyDictionary[Graph, dict[int, Callable[..., jax.Array]]] = weakref.WeakKeyDictionary()


def _check_size(item: Item, call: Call) -> None:
    if isinstance(item, np.ndarray) and 0 < item.size <= MAX_KNOWN:
        return  # none of its sizes is larger; a detector has hundreds of such nodes
    sizes = [dim for dim in shape_of(item) if isinstance(dim, int)]
    count(sizes, call.where, MAX_KNOWN if is_known(item) else MAX_ELEMENTS)


def _explain(error: Exception, call: Call, inputs: Sequence[Item], file: str) -> Exception:
    """The error with its file and node. Those of traces get a note; what Python and jax raise becomes one of ours."""
    if isinstance(error, OarError):
        if file in str(error) or type(error).__init__ is not OarError.__init__:
            return error
        where = call.where if error.where in (None, call.where) else f"{call.where}: {error.where}"
        fields = {"received": error.received, "allowed": error.allowed, "fix": error.fix}
        return type(error)(error.problem, where=f"{file}, {where}", **fields)
    if isinstance(error, MemoryError) or str(error).startswith("RESOURCE_EXHAUSTED"):  # Python's, and XLA's
        return ShapeError(
            "what the node computes does not fit into memory",
            where=f"{file}, {call.where}",
            received=f"{', '.join(_describe(item) for item in inputs)}: {str(error)[:300]}",
            allowed="what the memory that is free can hold",
            fix="pass in smaller inputs, or fewer at once; or else the file is damaged",
        )
    if type(error).__module__.startswith(_PASSED_ON):
        if not getattr(error, "__notes__", []):
            error.add_note(f"in {call.where} of {file}")
        return error
    if not isinstance(error, TypeError | ValueError | LookupError | ArithmeticError | AssertionError):
        return error
    return ShapeError(
        "the node cannot run on these inputs",
        where=f"{file}, {call.where}",
        received=f"{', '.join(_describe(item) for item in inputs)}: {type(error).__name__}: {str(error)[:300]}",
        fix="check the shapes and types of what you passed in; or else the file is damaged",
    )


def _describe(item: Item) -> str:
    if item is None or isinstance(item, list):
        return "nothing" if item is None else f"a sequence of {len(item)}"
    return f"{item.dtype}{list(shape_of(item))}"


def _place_operand(call: Call, x: Item, y: Item) -> Item:
    """The second operand of opset 6 and before, with its axes under those of the first from `axis` on.

    The slopes of PRelu stand under the channels; other operators say where, if `broadcast` is set.
    """
    rank, width = len(shape_of(x)), len(shape_of(y))
    slopes = call.node.op == "PRelu" and width == 1
    if y is None or width == 0 or not (call.attr("broadcast") or slopes):
        return y
    behind = rank - width - call.attr("axis", min(1, rank - width) if slopes else rank - width)
    if isinstance(y, Value):
        return reshape(y, (*y.shape, *(1,) * behind))
    return np.reshape(np.asarray(y), (*np.shape(y), *(1,) * behind))


def apply(operator: Operator, call: Call, inputs: Sequence[Item]) -> Any:
    """Run an operator on items; the result is one item or a tuple of them."""
    if operator.style == "values":
        return operator.run(call, *inputs)
    fixed = {i: inputs[i] for i in operator.static if i < len(inputs)}
    moving = [item for i, item in enumerate(inputs) if i not in fixed] if fixed else list(inputs)
    if call.version < 7 and operator.style == "elementwise" and len(moving) > 1:
        moving[1] = _place_operand(call, moving[0], moving[1])
    foldable = operator.folds and is_known(*moving)
    order: tuple[int, ...] | None = None
    arrays: Iterator[object]
    if foldable:
        if operator.style == "elementwise":
            check_broadcast([np.asarray(item) for item in moving if item is not None], MAX_KNOWN)
        arrays = iter(moving)
    elif operator.style == "elementwise":
        present = [item for item in moving if item is not None]
        aligned, order = align(present)
        queue = iter(aligned)
        arrays = iter([None if item is None else next(queue) for item in moving])
    else:
        arrays = iter([item if item is None or isinstance(item, list) else to_jax(item) for item in moving])
    if fixed:
        arrays = iter([fixed[i] if i in fixed else next(arrays) for i in range(len(inputs))])
    result = operator.run(call, *arrays)
    if isinstance(result, tuple):
        return tuple(_wrap(item, order) for item in result)
    return _wrap(result, order)


def _wrap(result: Item | jax.Array, order: tuple[int, ...] | None) -> Item:
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, jax.Array):
        in_order = order is not None and result.ndim == len(order)
        return Value(result, order) if in_order else Value.of(result)  # type: ignore[arg-type]
    if is_symbolic(result):  # numpy gives one element of an array of sizes bare
        return np.array(result, object)
    return np.asarray(result) if isinstance(result, np.generic) else result


# -- which initializers a layer holds -------------------------------------------------------------------------------

_VALID = re.compile(r"[^A-Za-z0-9_.]+")


def valid_names(names: Sequence[str]) -> dict[str, str]:
    """Names of a file -> names of a state dict: letters, digits, dots and underscores, each once."""
    used: set[str] = set()
    result = {}
    for name in names:
        plain = _VALID.sub("_", name).strip("._") or "tensor"
        plain = f"w{plain}" if plain[0].isdigit() else plain
        unique, number = plain, 2
        while unique in used or hasattr(GraphLayer, unique) or unique == "graph":
            unique, number = f"{plain}_{number}", number + 1
        used.add(unique)
        result[name] = unique
    return result


def find_last_uses(program: Program) -> dict[int, tuple[str, ...]]:
    """For each node of the main graph the values that are not read after it, in bodies neither."""
    last: dict[str, int] = {}
    for number, node in enumerate(program.nodes):
        inner = Program("", "", (node,), {}, (), ())
        for each in inner.walk():
            last.update(dict.fromkeys(each.inputs, number))
            for signature in each.signatures:
                last.update(dict.fromkeys(signature.outputs, number))
        last |= {name: number for name in node.outputs if name not in last}
    outputs = {spec.name for spec in program.outputs} | {""}
    ends: dict[int, list[str]] = {}
    for name, number in last.items():
        if name not in outputs:
            ends.setdefault(number, []).append(name)
    return {number: tuple(names) for number, names in ends.items()}


def check_operators(program: Program, operators: Mapping[str, Operator], newest: Mapping[str, int]) -> None:
    """Refuse a program with operators, or versions of operator sets, that are not known.

    Raises:
        FormatError: it names every unknown operator with its first node.
    """
    unknown: dict[str, Node] = {}
    for node in program.walk():
        if node.op not in operators:
            unknown.setdefault(node.op, node)
    if unknown:
        listed = []
        for op, node in list(unknown.items())[:20]:
            domain, _, name = op.rpartition(".")
            listed.append(
                f"{name} at node {node.name!r} ({domain or 'ai.onnx'} {program.domains.get(domain, '?')})"
            )
        raise FormatError(
            f"the graph has {len(unknown)} operators that are not known here"
            if len(unknown) > 1
            else "the graph has an operator that is not known here",
            where=program.name,
            received="; ".join(listed),
            allowed="the operators listed in docs/graphs.md",
            fix='export the model without it, or pass a function of your own: load(path, operators={"Name": function})',
        )
    for domain, version in program.domains.items():
        if version > newest.get(domain, version):
            raise FormatError(
                "the graph is of a newer operator set than is known here",
                where=program.name,
                received=f"{domain or 'ai.onnx'} {version}",
                allowed=f"up to {newest[domain]}",
                fix="convert it: onnx.version_converter.convert_version(model, 20)",
            )
    for node in program.walk():
        if node.op == "Identity" and not len(node.inputs) == len(node.outputs) == 1:
            raise FormatError(
                "an Identity hands one value on",
                where=f"{program.name}: node {node.name!r}",
                received=f"{len(node.inputs)} inputs and {len(node.outputs)} outputs",
                allowed="one of each",
                fix="the file is damaged: export the model again",
            )
        version = program.domains.get(node.op.rpartition(".")[0], 1)
        if version < operators[node.op].since:
            raise FormatError(
                "the graph uses an operator in a form that is too old",
                where=f"{program.name}: node {node.name!r} ({node.op})",
                received=f"opset {version}",
                allowed=f"opset {operators[node.op].since} and up",
                fix="convert it: onnx.version_converter.convert_version(model, 17)",
            )


def check_outputs(program: Program) -> None:
    """Refuse a program without outputs, or with outputs that nothing makes. Raises: FormatError."""
    defined = {name for node in program.nodes for name in node.outputs}
    defined |= {*program.parameters, *(spec.name for spec in program.inputs)}
    missing = [spec.name for spec in program.outputs if spec.name not in defined]
    if missing or not program.outputs:
        raise FormatError(
            "nothing makes an output of the graph",
            where=program.name,
            received=missing or "no outputs",
            fix="export the model again",
        )
