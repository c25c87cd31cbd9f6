"""Saving and loading static programs and their parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from framework import paddle
from framework.core.disk import write_file
from framework.core.errors import InputError
from framework.interop.source import Source
from framework.interop.weights.lod_tensor import tensor_record
from framework.interop.weights.pdparams import read_tensor
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.paddle_files import PaddleProgramLayer, find_files
from framework.paddle.jit.save import _exported, _folder, _write_free
from framework.paddle.jit.save import load as load_layer
from framework.paddle.jit.spec import InputSpec
from framework.paddle.static.deferred import free_settings_of
from framework.paddle.static.descriptions import OpDesc
from framework.paddle.static.executor import CompiledProgram, Executor
from framework.paddle.static.program import (
    Op,
    Program,
    Values,
    Variable,
    declare,
    default_main_program,
    program_guard,
)
from framework.paddle.static.program_description import ProgramDesc
from framework.paddle.static.program_file import program_file
from framework.paddle.static.variable import replay_all, value_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Predicate = Callable[[Tensor], bool]


def _needed(program: Program, targets: Sequence[Tensor]) -> list[Op]:
    """The entries that these variables are computed by, in order."""
    wanted, kept = {id(t) for t in targets}, []
    for op in reversed(program.ops):
        if not op.trains and any(id(o) in wanted for o in op.outputs):
            kept.append(op)
            wanted.update(id(t) for t in op.reads())
    return kept[::-1]


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def save_inference_model(
    path_prefix: str,
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    executor: Executor,
    **kwargs: Any,
) -> None:
    """Write what computes `fetch_vars` from `feed_vars` as an artifact folder, as `paddle.jit.save` does.

    Raises:
        ValueError: `path_prefix` is no path of a file, or something else than variables is fed or fetched.
    """
    if not isinstance(path_prefix, str) or path_prefix.endswith("/"):
        raise ValueError(f"'path_prefix' should be a string, and no directory, received {path_prefix!r}")
    for ending in (".pdmodel", ".pdiparams"):
        if Path(path_prefix + ending).is_dir():
            raise ValueError(f"'{path_prefix}{ending}' is an existing directory.")
    program = kwargs.get("program") or default_main_program()
    if isinstance(program, CompiledProgram):
        program = program._program
    feeds, fetches = _as_list(feed_vars), _as_list(fetch_vars)
    for name, variables in (("feed_vars", feeds), ("fetch_vars", fetches)):
        if not all(isinstance(one, Tensor) for one in variables):
            raise ValueError(
                f"'{name}' should be a Variable or a list of Variable, received {variables!r:.80}"
            )
    ops = _needed(program, fetches)
    settings = free_settings_of(program)

    def call(*tensors: Tensor) -> Any:
        values = Values({id(v): t for v, t in zip(feeds, tensors, strict=True)})
        values.settings = settings
        replay_all(ops, values, True)
        found = [value_of(f, values) for f in fetches]
        return found[0] if len(found) == 1 else found

    specs = [InputSpec(v.shape, v.dtype, v.name) for v in feeds]
    watcher, mode.watcher = mode.watcher, None
    try:
        with recorder_scope(None), paddle.no_grad():
            _write_free(_exported, call, call, specs).save(_folder(path_prefix))
    finally:
        mode.watcher = watcher


def load_inference_model(
    path_prefix: str | None, executor: Executor, **kwargs: str | bytes | None
) -> list[Any]:
    """[program, names of the inputs, variables to fetch] of what `save_inference_model` or `jit.save` wrote, here or in
    Paddle.

    Args:
        kwargs: `model_filename` and `params_filename`: the names of Paddle's files in the folder `path_prefix`, or
            without `path_prefix` their bytes.

    Raises:
        ValueError: no path, and no bytes.
        FormatError: no such model, or one that is damaged or has operators that are not known.
    """
    source = _paddle_sources(path_prefix, kwargs.get("model_filename"), kwargs.get("params_filename"))
    watcher, mode.watcher = mode.watcher, None
    try:
        with recorder_scope(None):
            layer = load_layer(str(path_prefix)) if source is None else PaddleProgramLayer(*source)
    finally:
        mode.watcher = watcher
    program = Program()
    specs = layer.input_spec()
    with program_guard(program), _recording():
        inputs: list[Variable] = [declare(str(s.name), s.shape, s.dtype) for s in specs]
        out = layer(*inputs)
    fetches = [t for t in _as_list(out) if isinstance(t, Tensor)]
    if isinstance(layer, PaddleProgramLayer):
        for variable, name in zip(fetches, layer.output_names, strict=True):
            variable.name = name
    return [program, [str(s.name) for s in specs], fetches]


def _paddle_sources(
    prefix: str | None, model: str | bytes | None, parameters: str | bytes | None
) -> tuple[Source | Path, Source | Path | None] | None:
    """Paddle's two files, or their bytes; None: a folder that was written here. Raises: ValueError: see above."""
    if prefix is None:
        if not isinstance(model, bytes):
            raise ValueError(
                "without path_prefix, model_filename and params_filename are the bytes of the program and of its "
                f"parameters; received {type(model).__name__}"
            )
        values = Source("params_filename", memoryview(parameters)) if isinstance(parameters, bytes) else None
        return Source("model_filename", memoryview(model)), values
    if model is not None:
        return Path(prefix) / str(model), Path(prefix) / str(parameters) if parameters is not None else None
    return None if Path(prefix).is_dir() else find_files(prefix)


def _recording() -> AbstractContextManager[None]:
    from framework.paddle.static.program import record

    return recorder_scope(record)


def save(program: Program, model_path: str, protocol: int = 4, **configs: object) -> None:
    """Write the parameters (`.pdparams`), the state of the optimizers (`.pdopt`) and the program without its training
    (`.pdmodel`, as `paddle.save(program, path)` does)."""
    Path(model_path).parent.mkdir(parents=True, exist_ok=True)
    paddle.save(program.state_dict("param"), f"{model_path}.pdparams", protocol)
    paddle.save(program.state_dict("opt"), f"{model_path}.pdopt", protocol)
    paddle.save(program, f"{model_path}.pdmodel")


def load(
    program: Program,
    model_path: str,
    executor: Executor | None = None,
    var_list: Sequence[Tensor] | None = None,
) -> None:
    """Take parameters and the state of optimizers that `save` wrote."""
    set_program_state(program, load_program_state(model_path, var_list))


def load_program_state(model_path: str, var_list: Sequence[Tensor] | None = None) -> dict[str, np.ndarray]:
    """Arrays by name."""
    state: dict[str, Any] = {}
    for ending in (".pdparams", ".pdopt"):
        if Path(model_path + ending).exists():
            state.update(paddle.load(model_path + ending, return_numpy=True))
    names = None if var_list is None else {v.name for v in var_list}
    return {n: v for n, v in state.items() if names is None or n in names}


def set_program_state(program: Program, state_dict: Mapping[str, object]) -> None:
    """Set parameters and optimizer state by name."""
    program.set_state_dict(state_dict)


def normalize_program(
    program: Program,
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    **kwargs: object,
) -> Program:
    """The program with what computes `fetch_vars` alone.

    Raises:
        TypeError: it is no program, or what is fed or fetched is no variable.
    """
    if not isinstance(program, Program):
        raise TypeError(f"program type must be `base.Program`, but received `{type(program)}`")
    for name, variables in (("feed_vars", _as_list(feed_vars)), ("fetch_vars", _as_list(fetch_vars))):
        if not all(isinstance(one, Tensor) for one in variables):
            raise TypeError(
                f"{name} type must be a Variable or a list of Variable, received {variables!r:.80}"
            )
    clone = program.clone(for_test=True)._prune(_as_list(fetch_vars))
    clone.data = {v.name: v for v in _as_list(feed_vars)}
    return clone


def serialize_persistables(
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    executor: Executor,
    **kwargs: Program,
) -> bytes | None:
    """The parameters that `fetch_vars` need, as the bytes of one file of Paddle's C++ side, of the current program or
    of `program`; None, with a warning, where there are none."""
    program = normalize_program(kwargs.get("program") or default_main_program(), feed_vars, fetch_vars)
    return _serialize_persistables(program, executor)


def _serialize_persistables(program: Program, executor: Executor) -> bytes | None:
    """All parameters of a program, as `serialize_persistables` gives those of a part."""
    return save_vars(executor, None, program, predicate=is_persistable)


def deserialize_persistables(program: Program, data: bytes | None, executor: Executor) -> None:
    """Take all parameters of a program from the bytes that `serialize_persistables` gave for the same ones.

    Raises:
        TypeError: it is no program.
        AssertionError: there are parameters, and no bytes.
        RuntimeError: a parameter has another shape.
        FormatError: the bytes are damaged.
    """
    if not isinstance(program, Program):
        raise TypeError(f"program type must be `base.Program`, but received `{type(program)}`")
    if data is None:
        assert not program.all_parameters(), (
            "Required 'data' shall be not None if program contains parameter, but received 'data' is None."
        )
        return
    load_vars(executor, None, program, predicate=is_persistable, filename=data)


def serialize_program(
    feed_vars: Variable | Sequence[Variable], fetch_vars: Variable | Sequence[Variable], **kwargs: Program
) -> bytes:
    """What computes `fetch_vars` of the current program, or of `program`, as the bytes of a `.pdmodel`, which says what
    is fed and fetched."""
    program = kwargs.get("program") or default_main_program()
    description = ProgramDesc()
    description.parse_from_string(_serialize_program(normalize_program(program, feed_vars, fetch_vars)))
    block = description.block(0)
    for name, kind in (("feed", "FEED_MINIBATCH"), ("fetch", "FETCH_LIST")):
        ends = block.var(name)
        ends.set_type(f"VarType.{kind}")
        ends.set_persistable(True)
    for column, variable in enumerate(_as_list(feed_vars)):
        _add_end(block._insert_op(column), "feed", "feed", variable.name, column)
    for column, variable in enumerate(_as_list(fetch_vars)):
        _add_end(block.append_op(), "fetch", variable.name, "fetch", column)
    return description.serialize_to_string()


def _add_end(operator: OpDesc, kind: str, source: str, target: str, column: int) -> None:
    operator.set_type(kind)
    operator.set_input("X", [source])
    operator.set_output("Out", [target])
    operator._set_attr("col", column)


def _serialize_program(program: Program) -> bytes:
    """A program as the bytes of a `.pdmodel`."""
    return program_file(program)


def deserialize_program(data: bytes) -> Program:
    """The program that the bytes of a `.pdmodel` describe, see `Program.parse_from_string`."""
    return Program.parse_from_string(data)


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes."""
    Path(path).write_bytes(content)


def load_from_file(path: str) -> bytes:
    """Read bytes."""
    return Path(path).read_bytes()


def is_persistable(var: Tensor) -> bool:
    """Whether a variable outlives a run: parameters, and what `persistable=True` says of."""
    return bool(var.persistable)


def _selected(
    program: Program | None, variables: Iterable[Tensor] | None, predicate: Predicate | None
) -> list[Tensor]:
    """The variables with values that are listed, else those of a program that the predicate takes."""
    if variables is None:
        named = (program or default_main_program()).list_vars()
        variables = [one for one in named if predicate is None or predicate(one)]
    return [one for one in variables if not isinstance(one, Variable)]


def save_vars(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Iterable[Tensor] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Write variables as Paddle's C++ side reads them: a file of its name each, or all of them, by name, in `filename`.

    Returns: The bytes where there is neither `dirname` nor `filename`, else None.
    """
    records = {one.name: tensor_record(one.numpy()) for one in _selected(main_program, vars, predicate)}
    if not records:
        warnings.warn(
            "no variable in your model, please ensure there are any variables in your model to save",
            stacklevel=2,
        )
        return None
    joined = b"".join(records[name] for name in sorted(records))
    if dirname is None and filename is None:
        return joined
    for name, data in records.items() if filename is None else [(filename, joined)]:
        write_file(Path(dirname or ".") / name, data)
    return None


def load_vars(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Iterable[Tensor] | None = None,
    predicate: Predicate | None = None,
    filename: str | bytes | None = None,
) -> None:
    """Take variables from what `save_vars` wrote; with neither `dirname` nor a file, from bytes in `filename`.

    Raises:
        TypeError: `main_program` is no program.
        InputError: a file is not there.
        RuntimeError: a variable has another shape.
        FormatError: a file is damaged.
    """
    if main_program is not None and not isinstance(main_program, Program):
        raise TypeError(
            f"The type of input main_program is invalid, expected type is Program, but received {type(main_program)}"
        )
    targets = sorted(_selected(main_program, vars, predicate), key=lambda one: one.name)
    if filename is None:
        for one in targets:
            _set_value(one, *_read_records(Path(dirname or ".") / one.name, 1))
        return
    source = filename if isinstance(filename, bytes) else Path(dirname or ".") / filename
    for one, value in zip(targets, _read_records(source, len(targets)), strict=True):
        _set_value(one, value)


def _read_records(source: Path | bytes, count: int) -> list[np.ndarray]:
    """The first `count` arrays of a file. Raises: InputError, where it is not there; FormatError: it is damaged."""
    if isinstance(source, Path) and not source.is_file():
        raise InputError(
            "there is no file of this variable", where=str(source), fix="what paddle.static.save_vars wrote"
        )
    data = source if isinstance(source, bytes) else source.read_bytes()
    records = Source("bytes" if isinstance(source, bytes) else str(source), memoryview(data))
    at, arrays = 0, []
    for _ in range(count):
        array, at = read_tensor(records, at)
        arrays.append(array)
    return arrays


def _set_value(tensor: Tensor, value: np.ndarray) -> None:
    """Raises: RuntimeError, where the shape is another one."""
    if list(value.shape) != list(tensor.shape):
        raise RuntimeError(
            f"Variable's shape does not match, the Program requires a parameter with the shape of ({tensor.shape}), "
            f"while the loaded parameter (namely [ {tensor.name} ]) has a shape of  ({value.shape})."
        )
    tensor.set_value(value)


_complete(__name__)
