"""jit.save and jit.load: a layer or function as our artifact folder, and back as a layer that runs without its code.

The folder holds the program for the engines (64-bit inputs come in as 32 bits there; outputs have their own types), the
weights, and the same program with its gradient, so that a loaded layer can be trained on.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import jax
import numpy as np
from jax import export

from framework.core.errors import InputError, OarError
from framework.core.types import JSON
from framework.export import CONFIG, Artifact, TensorSpec, load_artifact
from framework.export.artifact import origin_of, read_exported
from framework.export.program import file_names_alone, lower_program
from framework.jit import InputSpec as CoreSpec
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dispatch import Compiled, run
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tape import no_grad
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.jit.paddle_files import PaddleProgramLayer, find_files
from framework.paddle.jit.program import _Result, _Run, trace
from framework.paddle.jit.recording import Slot
from framework.paddle.jit.save_hooks import call_save_hooks
from framework.paddle.jit.saved_program import check_program, read_description
from framework.paddle.jit.spec import InputSpec, _compatible_non_tensor_spec
from framework.paddle.jit.to_static import StaticFunction, converted_layers, explained, layers_of
from framework.paddle.nn.layer import Layer
from framework.paddle.utils.structure import flatten

if TYPE_CHECKING:
    from framework.core.types import JSON
    from framework.paddle.static.program import Program

log = logging.getLogger("oar")
_TRAINING = "with_gradient.jax"
_NARROW = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
Named = dict[str, Any]
_Written = TypeVar("_Written")
Specs = Sequence[InputSpec]


def save(layer: Layer, path: str | Path, input_spec: Sequence[Any] | None = None, **configs: object) -> None:
    """Write a Layer (in eval mode) or a function as an artifact folder at `path`.

    Args:
        input_spec: an InputSpec or Tensor for each input, in the structures of the arguments, and constants for other
            arguments. Without it, the one given to to_static; without that the inputs of the last call, with a free
            first size.

    Raises:
        InputError: nothing is known of the inputs. TraceError: the program hangs on values or on a free size, also
        where free sizes behind the first are 32 or more, or multiples of 32; a warning says if that was assumed.
    """
    call_save_hooks(layer, input_spec, configs)
    _in_eval_mode(layer, input_spec, _exported).save(_folder(path))


class _FreeSizes(NamedTuple):
    """What is assumed of the free sizes behind the first axis, which is the batch."""

    multiple_of: int = 1
    least: int = 1

    def shape(self, spec: InputSpec, number: int) -> tuple[int | str, ...]:
        """The shape of an input with a name for each free size: ("n", 3, "32*d0_2", "32*d0_3")."""
        first, *others = CoreSpec(spec.shape).tensor_spec(number).shape or (None,)
        if first is None:
            return ()
        prefix = "" if self.multiple_of == 1 else f"{self.multiple_of}*"
        return (first, *[prefix + size if isinstance(size, str) else size for size in others])

    def constraints(self, specs: Sequence[InputSpec]) -> tuple[str, ...]:
        """What jax is told of the names: ("d0_2 >= 32", …)."""
        if self.least == 1:
            return ()
        shapes = (CoreSpec(spec.shape).tensor_spec(number).shape for number, spec in enumerate(specs))
        return tuple(
            f"{size} >= {self.least}" for shape in shapes for size in shape[1:] if isinstance(size, str)
        )

    def __str__(self) -> str:
        return f"multiples of {self.multiple_of}" if self.multiple_of > 1 else f"{self.least} or more"


_Write: TypeAlias = Callable[[object, Callable[..., object], Specs, _FreeSizes], _Written]
# What networks of images need where they ask about their sizes: Paddle asks at each call, a program once for all calls.
# First no strides beyond the input, then features of several strides that are joined.
_ASSUMPTIONS = (_FreeSizes(least=32), _FreeSizes(multiple_of=32))


def write_onnx_file(
    layer: Layer, path: str | Path, input_spec: Sequence[InputSpec | Tensor] | None, opset: int
) -> list[Path]:
    """Write a Layer (in eval mode) or a function as an ONNX file, compared with it before; -> the files.

    Raises: as `save`, and as `export_file`.
    """

    from framework.export.formats.onnx.check import export_file

    def write(
        layer: object, call: Callable[..., object], specs: Sequence[InputSpec], free: _FreeSizes
    ) -> list[Path]:
        traced = _trace(layer, call, specs, free)
        with explained(traced.name), converted_layers(traced.layers), x64():
            return export_file(
                traced.lowered,
                traced.weights,
                traced.wide_specs,
                path,
                constraints=free.constraints(specs),
                opset=opset,
            )

    return _in_eval_mode(layer, input_spec, write)


def _in_eval_mode(
    layer: Layer,
    input_spec: Sequence[InputSpec | Tensor] | None,
    write: _Write[_Written],
) -> _Written:
    """What `write` makes of the layer, its function and the inputs. Where the program hangs on free sizes: with exact
    ones if they were a guess, else with what is assumed of them, which is told."""
    function = layer.forward if isinstance(layer, Layer) else layer
    call = function.python_function if isinstance(function, StaticFunction) else function
    if isinstance(function, StaticFunction) and function.input_spec is not None:
        if input_spec is None:
            input_spec = function.input_spec
        _check_constants(input_spec, function.input_spec)
    specs, guessed = _specs(function, input_spec)
    call = call if input_spec is None else _with_constants(call, input_spec)
    modes = (
        [(sub, sub.training) for sub in layer.sublayers(include_self=True)]
        if isinstance(layer, Layer)
        else []
    )
    for sub, _ in modes:
        object.__setattr__(sub, "training", False)
    try:
        with no_grad():
            if not guessed:
                return _write_free(write, layer, call, specs)
            try:
                return write(layer, call, specs, _FreeSizes())
            except OarError:
                return write(layer, call, guessed, _FreeSizes())
    finally:
        for sub, training in modes:
            object.__setattr__(sub, "training", training)


def _write_free(
    write: _Write[_Written], layer: object, call: Callable[..., object], specs: Specs
) -> _Written:
    """What `write` makes of a function whose program may hang on the free sizes of its inputs."""
    try:
        return write(layer, call, specs, _FreeSizes())
    except OarError:
        for free in _ASSUMPTIONS if any(-1 in spec.shape[1:] for spec in specs) else ():
            with contextlib.suppress(OarError):
                written = write(layer, call, specs, free)
                log.warning("%s: saved for free sizes that are %s", _name(layer, call), free)
                return written
        raise


def _folder(path: str | Path) -> Path:
    text = str(path)
    for ending in (".pdmodel", ".pdiparams", ".json"):
        text = text.removesuffix(ending)
    return Path(text)


def _specs(
    function: object, given: Sequence[InputSpec | Tensor] | None
) -> tuple[list[InputSpec], list[InputSpec] | None]:
    """The inputs, and the exact ones to fall back on where the first sizes were only assumed to be free."""
    if given is not None:
        flat = jax.tree_util.tree_leaves(list(given), is_leaf=lambda s: isinstance(s, InputSpec))
        inputs = [s for s in flat if isinstance(s, InputSpec | Tensor)]
        return [s if isinstance(s, InputSpec) else InputSpec.from_tensor(s) for s in inputs], None
    programs = function.concrete_programs() if isinstance(function, StaticFunction) else []
    if not programs:
        raise InputError(
            "jit.save needs the shapes of the inputs",
            allowed="input_spec=[paddle.static.InputSpec([None, 3, 32, 32])]",
            fix="pass input_spec to jit.save or to to_static, or call the to_static function once before",
        )
    exact = [InputSpec(shape, dtype) for shape, dtype in programs[-1].argument_avals]
    free = [InputSpec([None, *s.shape[1:]] if s.shape else [], s.dtype, s.name) for s in exact]
    return free, exact


class _Traced(NamedTuple):
    """A layer as a function of its weights and inputs by name."""

    name: str
    layers: list[Layer]
    lowered: Callable[[Named, Named], Named]
    weights: dict[str, np.ndarray]
    slots: list[Slot]
    narrow_specs: dict[str, TensorSpec]
    wide_specs: dict[str, TensorSpec]
    result: Callable[[], object]
    """What the function returned, once it was traced."""


def _check_constants(specs: Sequence[object], expected: Sequence[object]) -> None:
    """Raises: ValueError: other constants are given than to_static was told."""
    leaves, declared = flatten(list(specs)), flatten(list(expected))
    if len(leaves) < len(declared):  # inputs that the program does not need may be left out
        declared = [one if one in declared else None for one in leaves]
    for one, other in zip(leaves, declared, strict=False):
        is_input = isinstance(one, InputSpec | Tensor) or isinstance(other, InputSpec | Tensor)
        if not is_input and not _compatible_non_tensor_spec(one, other):
            raise ValueError(
                f"jit.save: the constants of input_spec must be those of to_static: {one!r} is not {other!r}"
            )


def _with_constants(call: Callable[..., object], specs: Sequence[object]) -> Callable[..., object]:
    """The function of the Tensors alone: what else is given in place of a spec stays as it is, in its structure."""
    leaves, structure = jax.tree_util.tree_flatten(list(specs), is_leaf=lambda s: isinstance(s, InputSpec))

    def with_constants(*tensors: object) -> object:
        remaining = iter(tensors)
        filled = [next(remaining) if isinstance(leaf, InputSpec | Tensor) else leaf for leaf in leaves]
        return call(*jax.tree_util.tree_unflatten(structure, filled))

    with_constants.__name__ = getattr(call, "__name__", "function")
    return with_constants


def _exported(
    layer: object, call: Callable[..., object], specs: Sequence[InputSpec], free: _FreeSizes
) -> Artifact:
    traced = _trace(layer, call, specs, free)
    with explained(traced.name), converted_layers(traced.layers), x64():
        narrow, wide = (
            lower_program(
                traced.lowered,
                weights,
                inputs,
                constraints=free.constraints(specs),
            )
            for weights, inputs in (
                (_narrowed(traced.weights), traced.narrow_specs),
                (traced.weights, traced.wide_specs),
            )
        )
        with file_names_alone():
            training = _with_gradient(wide, traced.name)
    config = {
        "kind": "jit",
        "model": traced.name,
        "inputs": list(traced.wide_specs),
        "paddle": {
            "inputs": [
                [n, s.dtype.name, list(s.shape)] for n, s in zip(traced.wide_specs, specs, strict=True)
            ],
            "outputs": _described(traced.result()),
            "parameters": [n for n, slot in zip(traced.weights, traced.slots, strict=True) if _trained(slot)],
        },
    }
    return Artifact(config, {"float32": narrow}, traced.weights, files={_TRAINING: training})


def _narrowed(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights in the types in which engines hold them; the program takes them back to their own."""
    return {n: w.astype(_NARROW[str(w.dtype)]) if str(w.dtype) in _NARROW else w for n, w in weights.items()}


def _with_gradient(program: export.Exported, name: str) -> bytes:
    """The program and that of its gradient; alone where jax has no gradient for all sizes, as of a convolution with
    strides over a free size."""
    try:
        return bytes(program.serialize(vjp_order=1))
    except (ValueError, jax.errors.InconclusiveDimensionOperation) as error:
        log.warning(
            "%s: saved without its gradient, so jit.load gives a layer that is not trained further; numbers in place "
            "of the free sizes of input_spec keep it (%s)",
            name,
            str(error).splitlines()[0][:100],
        )
        return bytes(program.serialize())


def _name(layer: object, call: Callable[..., object]) -> str:
    return type(layer).__name__ if isinstance(layer, Layer) else getattr(call, "__name__", "function")


def _trace(
    layer: object, call: Callable[..., object], specs: Sequence[InputSpec], free: _FreeSizes
) -> _Traced:
    names = [spec.name or f"x{number}" for number, spec in enumerate(specs)]
    if len(set(names)) < len(names):
        raise InputError("two inputs have the same name", received=names, allowed="one name for each")
    shapes = [free.shape(spec, number) for number, spec in enumerate(specs)]
    scope = export.SymbolicScope(free.constraints(specs))
    with x64():
        tensors = [
            _placeholder(export.symbolic_shape(",".join(map(str, shape)), scope=scope), s)
            for shape, s in zip(shapes, specs, strict=True)
        ]
    layers = list(layers_of(layer))
    name = _name(layer, call)
    with explained(name), converted_layers(layers):
        program = trace(lambda: call(*tensors), tensors, layers)
        weights, slots = _weights(layer, program.slots[len(tensors) :])

        def function(
            values: Sequence[jax.Array], inputs: Sequence[jax.Array]
        ) -> tuple[list[jax.Array], _Run]:
            placeholders = [wrap(v) for v in inputs]
            traced = _Run(lambda: call(*placeholders), slots, placeholders, layers)
            made = traced(list(values), np.zeros(2, np.uint32), [])
            function.result, function.count = traced.result, traced.count  # type: ignore[attr-defined]
            return made[: traced.count], traced

        def lowered(named: Named, inputs: Named) -> Named:
            given = [inputs[n].astype(s.dtype.numpy) for n, s in zip(names, specs, strict=True)]
            made, traced = function([named[n].astype(weights[n].dtype) for n in weights], given)
            arrays = _arrays(traced, made, [named[n] for n in weights], given)
            function.types = [str(a.dtype) for a in arrays]  # type: ignore[attr-defined]
            return {f"output{n}": a for n, a in enumerate(arrays)}

        narrow_specs = {
            n: TensorSpec(shape, _NARROW.get(s.dtype.name, s.dtype.name))
            for n, shape, s in zip(names, shapes, specs, strict=True)
        }
        wide_specs = {
            n: TensorSpec(shape, s.dtype.name) for n, shape, s in zip(names, shapes, specs, strict=True)
        }
        return _Traced(
            name,
            layers,
            lowered,
            weights,
            slots,
            narrow_specs,
            wide_specs,
            lambda: function.result,  # type: ignore[attr-defined]
        )


def _placeholder(shape: Sequence[Any], spec: InputSpec) -> Tensor:
    """A Tensor without values, to trace with."""
    value: Any = jax.ShapeDtypeStruct(shape, spec.dtype.numpy)
    return wrap(value)


def _trained(slot: Slot) -> bool:
    tensor = slot.find(())
    return isinstance(tensor, Parameter) and not tensor.stop_gradient


def _weights(layer: object, slots: Sequence[Slot]) -> tuple[dict[str, np.ndarray], list[Slot]]:
    """The Tensors that the program reads, by the names of the state where they have one."""
    state = layer.to_static_state_dict() if isinstance(layer, Layer) else {}
    known = {id(tensor): name for name, tensor in state.items()}
    weights: dict[str, np.ndarray] = {}
    for slot in slots:
        tensor = slot.find(())
        assert tensor is not None
        weights[known.get(id(tensor), tensor.name)] = np.asarray(tensor._value)
    return weights, list(slots)


def _arrays(
    traced: _Run, made: Sequence[jax.Array], values: Sequence[jax.Array], inputs: Sequence[jax.Array]
) -> list[jax.Array]:
    """The returned Tensors in order; one may be an input, a weight or a Tensor from outside as it is."""
    values_of = {id(slot.find(())): value for slot, value in zip(traced.slots, values, strict=True)}
    values_of |= {id(tensor): value for tensor, value in zip(traced.args, inputs, strict=True)}
    arrays = []
    for leaf in jax.tree_util.tree_leaves(traced.result, is_leaf=lambda v: isinstance(v, _Result)):
        if isinstance(leaf, _Result) and isinstance(leaf.at, Slot):
            tensor = leaf.at.find(())
            assert tensor is not None
            arrays.append(values_of.get(id(tensor), tensor._value))
        elif isinstance(leaf, _Result):
            arrays.append(made[leaf.at])
    return arrays


def _described(result: object) -> JSON:
    """The structure of a result for the config: [kind, parts…]; a Tensor is "tensor"."""
    if isinstance(result, _Result):
        return "tensor"
    if isinstance(result, list | tuple):
        return ["list" if isinstance(result, list) else "tuple", *[_described(part) for part in result]]
    if isinstance(result, dict):
        return ["dict", *[[str(name), _described(part)] for name, part in result.items()]]
    return ["value", result if isinstance(result, bool | int | float | str | None) else str(result)]


def _rebuilt(structure: Any, tensors: Iterator[Tensor]) -> object:
    if structure == "tensor":
        return next(tensors)
    kind, *parts = structure
    if kind == "value":
        return parts[0]
    if kind == "dict":
        values = {name: _rebuilt(part, tensors) for name, part in sorted(parts, key=lambda pair: pair[0])}
        return {name: values[name] for name, _ in parts}  # jax has sorted them
    made = [_rebuilt(part, tensors) for part in parts]
    return made if kind == "list" else tuple(made)


class TranslatedLayer(Layer):
    """What `jit.load` returns: a layer whose forward is the saved program. After `train()` its parameters can be
    trained; dropout and running statistics stay as in eval mode. After `eval()` its results have no history."""

    def __init__(self, programs: Any, persistable_vars: Mapping[str, object]) -> None:
        super().__init__()
        self._program, self._description = programs
        trained = set(self._description.parameters)
        for name, value in persistable_vars.items():
            with x64():
                array = jax.numpy.asarray(value)
            if name in trained:
                self._parameters[name] = Parameter(array, name=name)
            else:
                tensor = wrap(array)
                tensor.name, tensor.persistable = name, True
                self._buffers[name] = tensor
        self._names = list(persistable_vars)
        self._inputs = [(name, types.to_numpy(dtype)) for name, dtype, _ in self._description.inputs]
        self._outputs = len(self._program.out_avals)
        self._compiled = Compiled("translated", self._call, whole=True)

    def _call(self, *values: jax.Array) -> tuple[jax.Array, ...]:
        count = len(self._inputs)
        inputs = {name: v.astype(kind) for (name, kind), v in zip(self._inputs, values[:count], strict=True)}
        out = self._program.call(dict(zip(self._names, values[count:], strict=True)), inputs)
        return tuple(out[f"output{number}"] for number in range(self._outputs))

    def forward(self, *inputs: object) -> Any:
        if len(inputs) != len(self._inputs):
            raise InputError(
                "wrong number of inputs",
                received=len(inputs),
                allowed=", ".join(name for name, _ in self._inputs),
            )
        state = [self._parameters.get(name, self._buffers.get(name)) for name in self._names]
        given = [x if isinstance(x, Tensor) else Tensor(x) for x in inputs]
        enabled = mode.grad_enabled
        mode.grad_enabled = enabled and self.training and self._program.has_vjp()
        try:
            made = run(self._compiled, [*given, *state])
        finally:
            mode.grad_enabled = enabled
        return _rebuilt(self._description.outputs, iter(made))

    def program(self, method_name: str = "forward") -> Program:
        """The saved program: its text is StableHLO."""
        return self._program

    def input_spec(self) -> list[InputSpec]:
        """The inputs as they were declared."""
        return [InputSpec(shape, dtype, name) for name, dtype, shape in self._description.inputs]


def load(path: str | Path, **configs: object) -> TranslatedLayer | PaddleProgramLayer:
    """Load what `save` (or static.save_inference_model) wrote, here or in Paddle, as a layer.

    Raises:
        FormatError: no such artifact, or a damaged one. InputError: an artifact that something else wrote.
    """
    folder = _folder(path)
    if not folder.is_dir() and (files := find_files(folder)) is not None:
        return PaddleProgramLayer(*files)
    artifact = load_artifact(folder)
    if _TRAINING not in artifact.files or "paddle" not in artifact.config:
        raise InputError(
            "this artifact was not written by paddle.jit.save",
            where=folder,
            fix="framework.jit.load reads it, without gradients",
        )
    description = read_description(artifact, folder / CONFIG)
    program = read_exported(artifact.files[_TRAINING], folder / _TRAINING, origin_of(artifact.config))
    check_program(program, description, artifact.weights, folder / _TRAINING)
    return TranslatedLayer((program, description), artifact.weights)
