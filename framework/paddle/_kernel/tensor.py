"""Tensor: one array with what Paddle's eager mode keeps beside it.

`_value` is the jax.Array; `stop_gradient`, `grad` and the node of the tape that made it belong to autograd. Operations
become methods of this class in framework/paddle/_kernel/methods.py.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import UnknownValueError
from framework.core.rng import array_of
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.errors import AssertedError, OperandError, ShapeError
from framework.paddle._kernel.free_sizes import is_free_size
from framework.paddle._kernel.lod_tensor import LoDTensor
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.x64 import x64

if TYPE_CHECKING:
    from framework.paddle._kernel.tape import Node
    from framework.paddle._kernel.views import Ownership, View

_names = itertools.count()
_parameter_names = itertools.count()
_BFLOAT16 = types.to_numpy("bfloat16")


class Tensor:
    """An array of one of Paddle's types. `Tensor(array)` takes a numpy or jax array, numbers or nested lists.

    Attributes:
        stop_gradient: True where no gradient is wanted, as by default.
        grad: a Tensor after `backward()`, else None.
        persistable: kept in a saved program.
    """

    # What most Tensors never change stands on the class: making one then sets a single attribute.
    _array: jax.Array
    stop_gradient: bool = True
    persistable: bool = False
    _node: Node | None = None
    _index: int = 0
    _gradient: Tensor | None = None
    _zeroed: bool = False  # clear_grad() asked for zeros that nobody has looked at yet
    _zeros_stop: bool = False  # whether these zeros stop gradients, as what they replace did
    _name: str | None = None
    _leaf_hooks: dict[int, Any] | None = None
    _gradient_listeners: tuple[Callable[[], object], ...] | None = None
    _version: int = 0
    _sizes: np.ndarray | None = None  # what it holds of sizes, under a trace (known_sizes.py)
    _link: Ownership | View | None = None  # to the Tensors over the same memory

    def __init__(
        self,
        value: object = (),
        dtype: object = None,
        place: object = None,
        stop_gradient: bool = True,
        *,
        persistable: bool = False,
        zero_copy: bool = False,
        name: str | None = None,
    ) -> None:
        """The place may stand second, as in Paddle; `zero_copy` steers its memory and changes nothing here."""
        self._value = as_array(value, None if hasattr(dtype, "is_cpu_place") else dtype)
        self.stop_gradient = stop_gradient
        if persistable:
            self.persistable = True
        if name is not None:
            self._name = name

    def __getattr__(self, name: str) -> Any:
        """A view whose memory got other values has no array until somebody asks for it."""
        if name == "_array" and self._link is not None:
            return cast("View", self._link).take(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    if TYPE_CHECKING:
        # Methods are installed from a table; a type checker cannot see them.
        def __add__(self, other: object) -> Tensor: ...
        def __radd__(self, other: object) -> Tensor: ...
        def __sub__(self, other: object) -> Tensor: ...
        def __rsub__(self, other: object) -> Tensor: ...
        def __mul__(self, other: object) -> Tensor: ...
        def __rmul__(self, other: object) -> Tensor: ...
        def __truediv__(self, other: object) -> Tensor: ...
        def __rtruediv__(self, other: object) -> Tensor: ...
        def __floordiv__(self, other: object) -> Tensor: ...
        def __mod__(self, other: object) -> Tensor: ...
        def __pow__(self, other: object) -> Tensor: ...
        def __matmul__(self, other: object) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: object) -> Tensor: ...
        def __le__(self, other: object) -> Tensor: ...
        def __gt__(self, other: object) -> Tensor: ...
        def __ge__(self, other: object) -> Tensor: ...
        def __getitem__(self, item: object) -> Tensor: ...
        def __setitem__(self, item: object, value: object) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def detach(self) -> Tensor: ...

    # What a traced or recorded program has to know of: `mode.watcher` is told of every use. `_array`, `_gradient` and
    # `_zeroed` are the attributes themselves, for watchers, and for what has asked whether anybody watches.

    @property
    def _value(self) -> jax.Array:
        watcher = mode.watcher
        return self._array if watcher is None else watcher.read_value(self, self._array)

    @_value.setter
    def _value(self, value: jax.Array) -> None:
        watcher = mode.watcher
        if watcher is None or watcher.set_value(self, value, not hasattr(self, "_array")):
            self._array = value
            if self._sizes is not None:
                self._sizes = None
            if self._link is not None:
                self._link.changed(self)

    @property
    def _grad(self) -> Tensor | None:
        if mode.watcher is not None:
            mode.watcher.touch_grad(self, self._gradient)
        return self._gradient

    @_grad.setter
    def _grad(self, grad: Tensor | None) -> None:
        if mode.watcher is not None:
            mode.watcher.touch_grad(self, self._gradient)
        self._gradient = grad

    @property
    def _zero_grad(self) -> bool:
        if mode.watcher is not None:
            mode.watcher.touch_zero(self, True)
        return self._zeroed

    @_zero_grad.setter
    def _zero_grad(self, zero: bool) -> None:
        if mode.watcher is not None:
            mode.watcher.touch_zero(self, False)
        self._zeroed = zero

    @property
    def shape(self) -> list[int]:
        return list(self._value.shape)

    @property
    def dtype(self) -> types.dtype:
        return types.of_numpy(self._value.dtype)

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> int:
        return int(self._value.size)

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = f"generated_tensor_{next(_names)}"
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def grad(self) -> Tensor | None:
        if self._grad is None and self._zero_grad:
            with x64():
                self._grad = wrap(jnp.zeros(self._value.shape, self._value.dtype))
            self._grad.stop_gradient = self._zeros_stop
        return self._grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if type(grad) is Tensor:  # a Tensor of its own: gradients are added to it in place
            stops = grad.stop_gradient
            grad = wrap(grad._value)
            grad.stop_gradient = stops
        self._grad, self._zero_grad = grad, False

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self.stop_gradient

    @property
    def inplace_version(self) -> int:
        """How often an in-place method has replaced the value."""
        return self._version

    def numpy(self, *args: object) -> np.ndarray:
        """A copy of the values. Paddle's method takes arguments and has no use for them; so does this one."""
        if isinstance(self._value, Tracer):
            if self._sizes is not None and not any(map(is_free_size, self._sizes.ravel())):
                return self._sizes.astype(self._value.dtype)
            raise UnknownValueError(
                "a Tensor of a compiled function has no values yet",
                received=f"numpy() of a Tensor {self.shape} under to_static",
                allowed="operations on Tensors",
                fix="take what has to look at values out of the function, or mark it with @paddle.jit.not_to_static",
            )
        return np.array(self._value)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)  # type: ignore[arg-type]

    def __jax_array__(self) -> jax.Array:
        return self._value

    def __dlpack__(self, **options: object) -> object:
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self) -> object:
        return self._value.__dlpack_device__()  # type: ignore[attr-defined]

    def item(self, *args: int) -> bool | int | float | complex:
        """The value of a Tensor of one element, or of the element at a flat or full index."""
        return self.numpy().item(*args)

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __len__(self) -> int:
        if self._value.ndim == 0:
            raise TypeError("len() of a 0-D Tensor")
        return self._value.shape[0]

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        return int(self._scalar("index"))

    def _scalar(self, use: str) -> Any:
        if self._value.size != 1:
            raise AssertedError(
                "only a Tensor of one element has a single value",
                where=f"{use}(Tensor)",
                received=f"shape {self.shape}",
                fix="reduce it first: x.any(), x.all(), x.sum(), or take an element",
            )
        if self._sizes is not None and not is_free_size(self._sizes.item()):
            return self._sizes.item()
        # Under a trace this raises jax's error, which to_static explains with the user's line.
        return self._value.reshape(()) if isinstance(self._value, Tracer) else np.asarray(self._value).item()

    def __hash__(self) -> int:
        return id(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self._value.ndim == 0 else format(str(self), spec)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only leaf Tensors can be copied by deepcopy: call detach() first")
        from framework.paddle.utils import unique_name

        self._value  # noqa: B018  (a view may have to take its values first)
        copy = object.__new__(type(self))
        memo[id(self)] = copy
        copy.__dict__.update(
            {
                k: v
                for k, v in self.__dict__.items()
                if k not in ("_gradient", "_gradient_listeners", "_leaf_hooks", "_link")
            }
        )
        copy._name = (
            f"{self.name}{unique_name.generate('_deepcopy')}"  # Paddle's: optimizer states are keyed by it
        )
        return copy

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.numpy(), self.stop_gradient, self._name))


def _rebuild(kind: type[Tensor], values: np.ndarray, stop_gradient: bool, name: str | None) -> Tensor:
    tensor = object.__new__(kind)
    tensor.__dict__.update(_array=as_array(values), stop_gradient=stop_gradient, _name=name)
    return tensor


class Parameter(Tensor):
    """A Tensor that is trained: `stop_gradient` is False, and optimizers take it.

    `optimize_attr["learning_rate"]` multiplies the optimizer's rate; `regularizer` replaces its weight decay;
    `need_clip` is False where gradient clipping passes it by; `sparse_rows` is True of a table whose gradient is of the
    rows that were read (an embedding with `sparse=True`).
    """

    stop_gradient = False
    persistable = True
    sparse_rows = False
    _begin: Callable[[], None] | None = None  # gives the first values to one that was made in a LazyGuard

    def __init__(
        self,
        value: object = None,
        dtype: object = None,
        *,
        shape: Sequence[int] | None = None,
        name: str | None = None,
        trainable: bool = True,
        learning_rate: float = 1.0,
        optimize_attr: Mapping[str, float] | None = None,
        regularizer: object = None,
        need_clip: bool = True,
        do_model_average: bool | None = None,
        lod_level: int = 0,
    ) -> None:
        """`shape` instead of values: of zeros, as Paddle's own class is called, with `optimize_attr` for the rate."""
        if value is None:
            if shape is None or dtype is None or any(size < 0 for size in shape):
                raise ValueError(
                    "a Parameter without values needs a shape of sizes that are not below 0 and a dtype, "
                    f"received shape {shape} and dtype {dtype}"
                )
            value = np.zeros(tuple(shape), types.to_numpy(dtype))
        super().__init__(value, dtype, stop_gradient=not trainable)
        self._name = name
        self.optimize_attr = {"learning_rate": learning_rate, **(optimize_attr or {})}
        self.regularizer = regularizer
        self.need_clip = need_clip
        self.do_model_average = do_model_average
        self.is_distributed = False
        self.is_firstly_shared = True  # whether this process is the first of those that tie it to another

    @classmethod
    def from_tensor(cls, tensor: Tensor, **kwargs: object) -> Self:
        """A parameter of the values of a Tensor, with the settings of `__init__`."""
        return cls(tensor, tensor.dtype, **kwargs)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = f"eager_tmp_param_{next(_parameter_names)}"
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def shape(self) -> list[int]:
        """A list; a tuple in static mode, as of Paddle's variables: programs compare it with that of arrays."""
        sizes = self._value.shape
        return list(sizes) if mode.recorder is None else sizes  # type: ignore[return-value]

    def initialize(self) -> None:
        """The first values of a parameter that was made in a `paddle.LazyGuard`; nothing for others."""
        if self._begin is not None and isinstance(self._value, jax.ShapeDtypeStruct):  # no state was loaded
            self._begin()
        self._begin = None

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if not isinstance(trainable, bool | np.bool_):
            raise ValueError(f"trainable is True or False, received {type(trainable).__name__}")
        self.stop_gradient = not trainable


def wrap(value: jax.Array) -> Tensor:
    """A Tensor around an array, without a copy, a check or a history."""
    tensor = object.__new__(Tensor)
    tensor._value = value
    return tensor


_MOST_SIZES = 16  # a longer list is not looked through for sizes that are free in a saved program


def as_array(value: object, dtype: object = None) -> jax.Array:
    """The array of a Tensor, an array, numbers or nested lists (of Tensors too), with Paddle's types: Python's integers
    are int64, its floats of the default type, complex numbers complex64; numpy's keep theirs, but for uint16, which
    holds the bits of bfloat16 where no other type is asked for."""
    kind = None if dtype is None else types.to_numpy(dtype)
    if isinstance(value, Tensor):
        value = value._value
    if not isinstance(value, jax.Array):
        if is_free_size(value):  # a size that is free in a saved program, or what is computed from it
            with x64():
                return jnp.asarray(value, np.int64 if kind is None else kind)
        if isinstance(value, list | tuple) and len(value) <= _MOST_SIZES and any(map(is_free_size, value)):
            with x64():
                return jnp.stack([as_array(part, kind) for part in value])
        value = _host_array(value, kind)
        types.of_numpy(kind or value.dtype)
        if value.dtype == np.uint16 and (kind is None or kind == _BFLOAT16):
            value = value.view(_BFLOAT16)
        if value.ndim and (kind is None or kind == value.dtype):
            with x64():
                return array_of(value)
    with x64():
        return jnp.asarray(value, kind)


def _host_array(value: object, kind: np.dtype | None) -> np.ndarray:
    """numpy's array of the values; `kind` is the type that they get afterwards, None: the type that Paddle gives."""
    if isinstance(value, np.ndarray | np.generic | LoDTensor):
        return np.array(value)  # a copy: on a CPU jax would use the caller's memory, and change with it
    keeps_type = _holds_tensors(value)
    if keeps_type:
        value = _without_tensors(value)
    try:
        values = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            "nested lists of different lengths are no Tensor", where="paddle.to_tensor", received=str(error)
        ) from None
    if values.dtype == object or values.dtype.kind in "US":
        raise OperandError(
            "cannot be made into a Tensor",
            where="paddle.to_tensor",
            received=f"{type(value).__name__}: {str(value)[:60]}",
            allowed="numbers, nested lists of numbers, numpy and jax arrays, Tensors",
        )
    if kind is None and not keeps_type:
        if values.dtype.kind == "f":
            return values.astype(types.default_numpy())
        if values.dtype.kind == "c":
            return values.astype(np.complex128 if types.get_default_dtype() == "float64" else np.complex64)
    return values


def _without_tensors(value: object) -> object:
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, list | tuple):
        return [_without_tensors(part) for part in value]
    return value


def _holds_tensors(value: object) -> bool:
    """Whether nested lists have a Tensor among their first elements: its type is kept, those of numpy are not."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, Tensor)


def _references(tensor: Tensor) -> int:
    return sys.getrefcount(tensor._array)


_ALONE = _references(wrap(cast(jax.Array, np.zeros(()))))


def is_only_holder(tensor: Tensor) -> bool:
    """Whether nothing but the Tensor refers to its array, so that a program may put its result in the same memory.

    Views of numpy do not count: jax copies where one exists.
    """
    return _references(tensor) <= _ALONE and not isinstance(tensor._value, Tracer)
