"""paddle.save and paddle.load: the files of Paddle 2.6, both ways.

A state dict of Tensors is written with a table of their names, anything else with a (name, array) pair for each Tensor,
as Paddle does. What is read is data alone: a pickle that names other classes or functions is refused.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from framework.core.disk import write_file
from framework.core.errors import FormatError, WeightError
from framework.interop.source import Source, bfloat16, read_source
from framework.interop.weights.lod_tensor import tensor_record
from framework.interop.weights.pdparams import NAME_TABLE, read_first_pickle, read_tensor
from framework.interop.weights.pdparams_writer import write_pickle
from framework.interop.weights.pickle_writer import PickledObject, check_plain, write_plain
from framework.interop.weights.pickled import NamedArray
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.static.program import Program

log = logging.getLogger("oar")
_SAVE_OPTIONS = ("use_binary_format", "pickle_protocol")
_LOAD_OPTIONS = ("model_filename", "params_filename", "keep_name_table", "return_numpy")
_PICKLE = b"\x80"


def save(obj: object, path: str | os.PathLike[str] | BinaryIO, protocol: int = 4, **configs: object) -> None:
    """Write a Tensor, or dicts, lists and tuples of Tensors, arrays, numbers and text, to a file or a BytesIO; or a
    static Program without its training, as a `.pdmodel`.

    An object of another class is pickled as Paddle does it, by the name of its class: Paddle reads it where the class
    is, and `load` here refuses it, since such a file may name any code.

    The file appears whole or not at all. It is a pickle of protocol 4, which Paddle reads whatever `protocol` it was
    asked for. `use_binary_format=True` writes one Tensor as Paddle's C++ side does.

    Raises:
        ValueError: a Layer is to be saved; a file name is empty; `protocol` is not 2, 3 or 4; an unknown option.
        WeightError: a value is of another type. DiskError: the file cannot be written.
    """
    _check_options(configs, _SAVE_OPTIONS, "save")
    if not isinstance(protocol, int) or not 2 <= protocol <= 4:
        raise ValueError(f"paddle.save: protocol is 2, 3 or 4, received {protocol!r}")
    if isinstance(path, str) and not os.path.basename(path):
        raise ValueError(
            f"paddle.save: {path!r} names a folder: give the file in it, such as {path}model.pdparams"
        )
    if configs.get("use_binary_format"):
        if not isinstance(obj, Tensor):
            raise TypeError(
                f"paddle.save: use_binary_format is for one Tensor, received {type(obj).__name__}"
            )
        data = tensor_record(obj.numpy())
        if isinstance(path, str | os.PathLike):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        else:
            path.write(data)
        return
    from framework.paddle.static.program import Program

    if isinstance(obj, Program):
        _save_program(obj, path)
        return
    plain = _saved(obj)
    if isinstance(path, str | os.PathLike):
        write_pickle(os.fspath(path), plain)
    elif isinstance(path, io.IOBase):
        check_plain(plain, "paddle.save")
        write_plain(path, plain)
    else:
        raise ValueError(f"paddle.save writes to a path or a BytesIO, received {type(path).__name__}")


def _save_program(program: Program, path: str | os.PathLike[str] | BinaryIO) -> None:
    from framework.paddle.static.program_file import program_file

    data = program_file(program)
    if isinstance(path, str | os.PathLike):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_file(Path(path), data)
    else:
        path.write(data)


def load(path: str | os.PathLike[str] | BinaryIO, **configs: object) -> Any:
    """What `paddle.save` wrote, here or in Paddle: Tensors, or arrays with `return_numpy=True`.

    `keep_name_table=True` keeps the table of variable names that a state dict is saved with. A `.pdmodel` that Paddle
    wrote is a `static.Program` whose parameters are zeros until `set_state_dict`.

    Raises:
        ValueError: an unknown option, or there is no file of this name.
        FormatError: the file is damaged, a program that was exported here, or a pickle that holds anything but data.
    """
    _check_options(configs, _LOAD_OPTIONS, "load")
    start = None  # of a stream, which is left behind what was read: more may follow
    if isinstance(path, io.IOBase):
        start = path.tell()
        source = Source("paddle.load", memoryview(path.read()))
    elif isinstance(path, str | os.PathLike):
        source = _file(os.fspath(path))
    else:
        raise ValueError(f"paddle.load reads a path or a BytesIO, received {type(path).__name__}")
    as_numpy = bool(configs.get("return_numpy"))
    if bytes(source.data[:1]) != _PICKLE:
        if source.name.endswith(".pdmodel"):
            return _program(source)
        array, end = read_tensor(source, 0)
        _left_behind(path, start, end, source)
        return _array(array) if as_numpy else _tensor(array)
    state, end = read_first_pickle(source, uint16_is_bfloat16=not as_numpy)
    _left_behind(path, start, end, source)
    if isinstance(state, dict) and NAME_TABLE in state:
        names = state[NAME_TABLE]
        for key, name in names.items():
            if isinstance(state.get(key), np.ndarray):
                state[key] = _array(state[key]) if as_numpy else _tensor(state[key], name)
        if not configs.get("keep_name_table"):
            del state[NAME_TABLE]
        return state
    named = any(isinstance(part, NamedArray) for part in _parts(state))
    return _loaded(state, as_numpy, named)


def _check_options(given: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"paddle.{where} has no option {unknown[0]!r}; it has {', '.join(known)}")


def _left_behind(path: Any, start: int | None, end: int, source: Source) -> None:
    """Set a stream to the end of what was read; a file has to end there."""
    if start is not None:
        path.seek(start + end)
    elif end != len(source.data):
        raise source.error("the file goes on behind what paddle.save writes", end)


def _file(path: str) -> Source:
    if os.path.isfile(path):
        return read_source(path)
    beside = [
        path + suffix for suffix in (".pdparams", ".pdopt", ".pdmodel") if os.path.exists(path + suffix)
    ]
    if beside and beside[0].endswith(".pdmodel"):
        raise _program_error(path, beside[0])
    hint = f"; there is {beside[0]}: give the whole name" if beside else ""
    raise ValueError(f"paddle.load: there is no file {path}{hint}")


def _program(source: Source) -> Program:
    from framework.paddle.static.program import Program

    try:
        return Program.parse_from_string(bytes(source.data))
    except ValueError:
        raise _program_error(source.name, source.name) from None


def _program_error(path: str, received: str) -> FormatError:
    return FormatError(
        "this is an exported program, not a saved object",
        where=path,
        received=received,
        fix="paddle.jit.load or paddle.static.load_inference_model loads a program with its parameters; both take the "
        "path without .pdmodel",
    )


def _saved(obj: Any) -> object:
    """Plain data with arrays for Tensors, as Paddle lays them out."""
    if any(isinstance(part, Layer) for part in _parts(obj)):
        raise ValueError(
            "paddle.save does not save a Layer: save layer.state_dict() and load it into a new one by set_state_dict, "
            "or export it by paddle.jit.save"
        )
    if _is_state_dict(obj):
        names = {key: value.name for key, value in obj.items() if isinstance(value, Tensor)}
        if not obj:
            log.warning("paddle.save: the state dict is empty")
        arrays = {key: value.numpy() if isinstance(value, Tensor) else value for key, value in obj.items()}
        return {**arrays, NAME_TABLE: names}
    return _with_names(obj)


def _is_state_dict(obj: object) -> bool:
    """All values are Tensors, or dicts without Tensors such as the state of a schedule."""
    return isinstance(obj, dict) and all(
        isinstance(value, Tensor)
        or (isinstance(value, dict) and not any(isinstance(part, Tensor | Layer) for part in _parts(value)))
        for value in obj.values()
    )


def _parts(obj: object) -> Iterator[object]:
    """An object and what it holds."""
    yield obj
    if isinstance(obj, dict):
        obj = list(obj.values())
    if isinstance(obj, list | tuple | set) and not isinstance(obj, NamedArray):
        for part in obj:
            yield from _parts(part)


def _with_names(obj: Any) -> object:
    if isinstance(obj, Tensor):
        return NamedArray((obj.name, obj.numpy()))
    if isinstance(obj, dict):
        return type(obj)((key, _with_names(value)) for key, value in obj.items())
    if type(obj) in (list, tuple, set):
        return type(obj)([_with_names(part) for part in obj])
    if isinstance(obj, bool | int | float | complex | str | bytes | np.ndarray | np.generic | None):
        return obj
    return _of_another_class(obj)


def _of_another_class(obj: object) -> PickledObject:
    """An object of a program's own class, such as the arguments of PaddleNLP's Trainer, as Paddle pickles it.

    Raises: TypeError, where Paddle refuses it too, or pickle does.
    """
    from framework.paddle.static.program import Program

    advice = ""
    if isinstance(obj, Program):
        advice = (
            ": paddle.static.save_inference_model writes what computes its outputs, paddle.static.save its "
            "parameters, for a Program that is built again"
        )
    elif not isinstance(obj, Iterable):
        try:
            return PickledObject(obj, dict.fromkeys((Tensor, Parameter), _named_pair))
        except WeightError as error:
            advice = f", which cannot be pickled: {error.__cause__}"
    raise TypeError(
        f"paddle.save writes Tensors, arrays, numbers, text and dicts, lists and tuples of them, received "
        f"{type(obj).__name__}{advice}"
    )


def _named_pair(tensor: Tensor) -> tuple[Callable[..., object], tuple[object, ...]]:
    """What Paddle pickles for a Tensor within an object."""
    return tuple, ((tensor.name, tensor.numpy()),)


def _loaded(value: object, as_numpy: bool, named: bool) -> object:
    """Tensors for named arrays; for all arrays where none has a name."""
    if isinstance(value, NamedArray):
        return _array(value.array) if as_numpy else _tensor(value.array, value.name)
    if isinstance(value, np.ndarray):
        return _array(value) if as_numpy or named else _tensor(value)
    if isinstance(value, dict):
        return {key: _loaded(part, as_numpy, named) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_loaded(part, as_numpy, named) for part in value])
    return value


def _array(array: np.ndarray) -> np.ndarray:
    """An array that can be written to; of bfloat16 its bits, as Paddle gives them."""
    return np.array(array.view(np.uint16) if array.dtype == bfloat16 else array)


def _tensor(array: np.ndarray, name: str | None = None) -> Tensor:
    tensor = wrap(as_array(np.array(array)))
    if name is not None:
        tensor.name = name
    return tensor
