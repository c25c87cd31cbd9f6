"""The engine of models that come as graphs of other frameworks: Paddle's programs and ONNX files."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from framework.core.compilation import compile_options, enable_compilation_cache, quick_compile_options
from framework.core.device import Device, default_device
from framework.core.dtypes import fits_int32, narrow
from framework.core.errors import ShapeError, TraceError
from framework.core.lazy import LazyModule
from framework.core.process import check_process
from framework.core.types import PyTree
from framework.export.program import from_kernel_layout, kernel_names, to_kernel_layout
from framework.inference.engine import TensorShape, describe
from framework.inference.row_chains import CompiledChain
from framework.inference.weight_folding import FoldedFunction
from framework.interop import detect, load_program
from framework.interop.graph.layer import GraphLayer
from framework.interop.graph.parts import index_bounds, names_read, nodes_like, split_program
from framework.interop.graph.roles import kernel_values
from framework.interop.graph.rows import find_chains
from framework.interop.programs.program import TEXT_NAME, TensorSpec
from framework.interop.source import Source, read_source
from framework.nn import functional_core
from framework.nn.functional.lowering import folding_scope
from framework.nn.functional_core import State

if TYPE_CHECKING:
    import jax
else:
    jax = LazyModule("jax")

log = logging.getLogger("oar")
_WIDE = ("int64", "uint64", "float64")  # which jax has only where 64 bits are on
# Operators that round to 8 bits, or compute with what was.
_EIGHT_BITS = frozenset(
    (
        *("QuantizeLinear", "DynamicQuantizeLinear", "quantize_linear"),
        *("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"),
    )
)


def load_graph(path: Path | Source, params: Path | Source | None = None) -> GraphLayer:
    """A `.pdmodel`, PIR `.json` or `.onnx` file as a layer.

    Raises:
        FormatError: it is none of them, damaged, or has operators that are not known.
    """
    from framework.interop.graph.paddle import build_paddle_layer
    from framework.interop.programs import onnx

    source = read_source(path)  # once
    if path.name.endswith(".onnx") or (
        isinstance(path, Source) and params is None and detect(source) == "onnx"
    ):
        return onnx.load(source)
    return build_paddle_layer(load_program(source, params))


def _declare(spec: TensorSpec, is_output: bool = False) -> TensorShape:
    names = (f"{spec.name}.{axis}" if axis else "n" for axis in range(len(spec.shape)))
    shape = tuple(size if isinstance(size, int) else name for size, name in zip(spec.shape, names))
    if spec.dtype == TEXT_NAME:
        return TensorShape(shape, np.dtype(np.str_))
    if spec.dtype == "float64" or (is_output and spec.dtype in _WIDE):
        return TensorShape(shape, np.dtype(spec.dtype))
    return TensorShape(shape, np.dtype(jax.dtypes.canonicalize_dtype(spec.dtype or "float32")))


class GraphEngine:
    """Run a graph on numpy inputs by name, compiled once for every combination of shapes. Safe in threads.

    Sizes that the file declares are not enforced: exports declare the size that they were traced with. Nodes whose
    results have sizes that depend on values (suppression of boxes), and what follows them, run after the compiled part,
    one by one on the host, so that there are as many rows as in the framework that the graph came from; so does a graph
    whose branches have results of different shapes.
    """

    takes_any_shape = False

    def __init__(self, layer: GraphLayer, device: Device | None = None) -> None:
        check_process()
        enable_compilation_cache()
        self.device = device or default_device()
        self.inputs = {spec.name: _declare(spec) for spec in layer.inputs}
        self._bounds = index_bounds(layer.program)
        self._long_inputs = {spec.name for spec in layer.inputs if spec.dtype == "int64"}
        self.outputs = {spec.name: _declare(spec, is_output=True) for spec in layer.outputs}
        self._graphdef, params, buffers = functional_core.split(layer)
        self._layer, self._is_compiled = layer, True
        self._kernels = kernel_names(layer)
        self._prepared = self._prepare_weights(params, buffers)
        # As in `lower_layer`: a kernel that comes as an argument would be transposed in every call.
        params = {n: to_kernel_layout(np.asarray(w)) if n in self._kernels else w for n, w in params.items()}
        kernels = kernel_values(layer.program)
        self._prepared_kernels = {
            n
            for n in kernels & set(self._prepared)
            if self._prepared[n].ndim in (4, 5) and self._prepared[n].dtype != np.float64
        }
        prepared = {
            n: to_kernel_layout(np.asarray(w)) if n in self._prepared_kernels else w
            for n, w in self._prepared.items()
        }
        self._weights = self._to_device((params, buffers, prepared))
        self._shapes: set[tuple] = set()
        self._growing: frozenset[int] = frozenset()
        self._guard = threading.Lock()
        self._split()

    def _prepare_weights(self, params: State, buffers: State) -> State:
        """What nodes make of weights alone, by the name of the value: weights of 8 bits as numbers to compute with.

        In one program: by themselves the nodes of a MobileNetV3 of 8 bits took 8.8 s of CPU time, .4 so.
        """
        program, graph = self._layer.program, self._layer.graph
        programs = split_program(program, graph.operators, graph.roles)
        if any(program.nodes[number].op in _EIGHT_BITS for number in (*programs.head, *programs.tail)):
            log.info(
                "%s computes with 8 bits, which is not faster than float32 on this engine: ResNet-50 takes 2.7 times "
                "the CPU time of ONNX Runtime",
                program.name,
            )
        if not programs.fixed:
            return {}

        def run(params: State, buffers: State) -> State:
            nodes = programs.fixed, {}, programs.prepared
            out, _ = functional_core.apply(
                self._graphdef, params, buffers, None, *nodes, in_doubles=True, method="run_nodes"
            )
            return out

        options = quick_compile_options() if self.device.platform == "cpu" else compile_options(self.device)
        return jax.jit(run, compiler_options=options or None)(params, buffers)

    def _split(self) -> None:
        """What is compiled, and what runs behind it on the host."""
        layer = self._layer
        programs = split_program(layer.program, layer.graph.operators, layer.graph.roles, self._growing)
        outputs = programs.handed if programs.tail else tuple(dict.fromkeys(self.outputs))
        read = names_read(layer.program, programs.tail) | set(self.outputs)
        held = {name: value for name, value in self._prepared.items() if name in read}
        head, chains = self._compile(programs.head, outputs), self._row_chains(programs.tail)
        self._programs = head, programs.tail, held, chains  # all at once, for other threads

    def _compile(
        self, numbers: Sequence[int], outputs: Sequence[str]
    ) -> Callable[[Mapping[str, jax.Array]], State]:
        """Nodes as a function of the values that they need besides weights."""
        graphdef = self._graphdef

        def run(params: State, buffers: State, prepared: State, inputs: State) -> State:
            params, prepared = (
                {n: from_kernel_layout(w) if n in kernels else w for n, w in arrays.items()}
                for arrays, kernels in ((params, self._kernels), (prepared, self._prepared_kernels))
            )
            values = prepared | inputs
            out, _ = functional_core.apply(
                graphdef, params, buffers, None, numbers, values, outputs, in_doubles=True, method="run_nodes"
            )
            return out

        options = compile_options(self.device) or None
        if self.device.platform != "cpu":
            return functools.partial(jax.jit(run, compiler_options=options), *self._weights)

        def run_folding(*arguments: State) -> State:
            with folding_scope():
                return run(*arguments)

        return FoldedFunction(run_folding, self._weights, options)

    def _row_chains(self, tail: Sequence[int]) -> list[CompiledChain]:
        """What of the tail works row by row with weights."""
        program = self._layer.program
        fixed = {*self._layer.graph.roles, *self._layer.graph.constants, *self._prepared} - set(self.inputs)
        # Exporters write an Identity for an initializer that equals another.
        makers: dict[str, int] = {}
        for number, node in enumerate(program.nodes):
            if node.op == "Identity" and node.inputs[0] in fixed:
                makers[node.outputs[0]] = number
                fixed.add(node.outputs[0])
        chains = []
        for numbers in find_chains(program, tail, fixed):
            read = names_read(program, numbers)
            needed = [makers[name] for name in makers if name in read]
            function = self._compile((*needed, *numbers), program.nodes[numbers[-1]].outputs[:1])
            chains.append(CompiledChain(self._layer, numbers, needed, function))
        return chains

    def _move(self, error: TraceError) -> bool:
        """Put the nodes behind the compiled part whose sizes depend on values, as the error says; False for no node."""
        with self._guard:
            nodes = nodes_like(self._layer.program, str(error))
            if not nodes or nodes <= self._growing:
                return False
            self._growing |= nodes
            self._split()
            return True

    @property
    def compile_count(self) -> int:
        return len(self._shapes)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name, in the file's order and with its types of 64 bits; blocks until they are there.

        Raises:
            ShapeError: the inputs are not those of the graph by name or number of axes, or do not fit one another, or
                have an index of a row that a weight does not have.
        """
        return {
            name: self._as_declared(name, np.asarray(value)) for name, value in self.start(inputs).items()
        }

    def _as_declared(self, name: str, value: np.ndarray) -> np.ndarray:
        """An output in the type of the file. Integers are computed with 32 bits where these are enough.

        Paddle's files may declare indices as float32, which is the type of an output that nobody set: they are int64.
        """
        dtype = self.outputs[name].dtype
        if value.dtype == np.int32 and dtype.kind == "f" and self._layer.program.format != "onnx":
            return value.astype(np.int64)
        kinds = "f" if dtype.kind == "f" else "iu"
        return value.astype(dtype) if dtype.name in _WIDE and value.dtype.kind in kinds else value

    def start(self, inputs: Mapping[str, ArrayLike]) -> dict[str, jax.Array]:
        """As a call, but the outputs may still be under way."""
        check_process()
        if set(inputs) != set(self.inputs):
            raise ShapeError(
                "the program takes other inputs",
                received=", ".join(sorted(inputs)),
                allowed=describe(self.inputs),
                fix=self._explain_weights(set(inputs) & set(self._layer.program.parameters)),
            )
        arrays = {name: self._array(name, inputs[name]) for name in self.inputs}
        text = {name: array for name, array in arrays.items() if array.dtype.kind == "U"}
        placed = self._to_device({n: array for n, array in arrays.items() if n not in text})
        while self._is_compiled:
            head, tail, held, chains = self._programs
            try:
                values = head(placed)
            except TraceError as error:
                if not self._move(error):
                    self._is_compiled = False
                    log.info(
                        "the graph runs node by node, which takes longer: %s", str(error).splitlines()[0]
                    )
                continue
            self._shapes.add(tuple(array.shape for array in arrays.values()))
            if tail:
                values = self._layer.run_nodes(
                    tail, held | placed | text | values, tuple(self.outputs), True, chains, in_doubles=True
                )
            return {name: values[name] for name in self.outputs}
        every = range(len(self._layer.program.nodes))
        return self._layer.run_nodes(every, placed | text, tuple(self.outputs), in_doubles=True)

    def _to_device(self, arrays: PyTree) -> PyTree:
        """Arrays on the device, those of 64 bits as they are."""
        with jax.enable_x64(True):
            return jax.device_put(arrays, self.device)

    def _explain_weights(self, names: set[str]) -> str | None:
        """What to do about inputs with default values, which became weights."""
        if not names:
            return None
        return (
            f"{', '.join(sorted(names))}: the file has values of it, so that it is a weight; to pass it in, "
            "take it out of the initializers of the file"
        )

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Nothing: a graph is compiled by its first call with new shapes."""

    def _array(self, name: str, value: ArrayLike) -> np.ndarray:
        spec = self.inputs[name]
        if isinstance(value, Mapping):
            raise ShapeError(
                "an input of the graph is a dictionary, and inputs are arrays here",
                where=name,
                received=f"a dictionary of {len(value)}",
                allowed="arrays",
                fix="export the model without the step that takes dictionaries (DictVectorizer, CastMap)",
            )
        array = np.asarray(value)
        if spec.dtype.kind == "U" and array.dtype.kind in "OSU":
            array = array.astype(np.str_)
        is_long = name in self._long_inputs and array.dtype == np.int64 and not fits_int32(array)  # hashes
        if not is_long and spec.dtype != np.float64:
            array = narrow(array, name)
        if array.ndim != len(spec.shape) or any(
            (array.dtype.kind == kind) != (spec.dtype.kind == kind) for kind in "fU"
        ):
            raise ShapeError(
                "an input does not fit the program",
                where=name,
                received=f"{array.shape} {array.dtype}",
                allowed=str(spec),
            )
        low, high = self._bounds.get(name, (0, -1))
        if (
            low <= high
            and array.dtype.kind in "iu"
            and array.size
            and not low <= array.min() <= array.max() <= high
        ):
            raise ShapeError(
                "an input has an index of a row that the weight does not have",
                where=name,
                received=f"{array.min()} to {array.max()}",
                allowed=f"{low} to {high}",
                fix="numbers of tokens come from the tokenizer that the model was trained with",
            )
        return array if is_long else array.astype(spec.dtype, copy=False)
