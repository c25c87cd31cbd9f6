"""Attributes and methods of Tensor that are no operations: its place, its values as a whole, its memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ArgumentTypeError, AssertedError
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle._kernel.views import is_contiguous, reversed_axes, strides_of, view_of
from framework.paddle.device.places import Place, default_device, place_of
from framework.paddle.ops.attribute import cast
from framework.paddle.ops.creation import clone, full_like
from framework.paddle.ops.search import where


class DenseTensor:
    """What `Tensor.get_tensor()` gives: the Tensor's memory, to be read and set."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def set(self, array: object, place: object = None) -> None:
        """Replace the values."""
        self._tensor._value = as_array(array)

    def shape(self) -> list[int]:
        return self._tensor.shape

    def _dtype(self) -> types.dtype:
        return self._tensor.dtype

    def _is_initialized(self) -> bool:
        return True

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self._tensor.__array__(dtype)

    def __str__(self) -> str:
        tensor = self._tensor
        values = " ".join(
            f"{v:g}" if isinstance(v, float) else str(v) for v in tensor.numpy().ravel().tolist()
        )
        return (
            f"  - shape: {tensor.shape}\n  - layout: NCHW\n  - place: {tensor.place}\n"
            f"  - dtype: {tensor.dtype.name}\n  - data: [{values}]"
        )


@view_of(reversed_axes)
@operation(name="transpose")
def _reversed_axes(x: Array) -> Array:
    return jnp.transpose(x)


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x` in another type: `to(dtype)`, `to(device, dtype, blocking)`, `to(other)`. Devices are left to jax.

    Raises:
        TypeError: an argument that is none of these.
    """
    dtype = kwargs.pop("dtype", None)
    for name in ("device", "blocking", "other"):
        value = kwargs.pop(name, None)
        if name == "other" and value is not None:
            dtype = value.dtype
    if kwargs:
        raise TypeError(f"Tensor.to() has no argument {next(iter(kwargs))!r}: device, dtype, blocking, other")
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, types.dtype | type | np.dtype) or (isinstance(arg, str) and _is_type(arg)):
            dtype = arg
        elif not (arg is None or isinstance(arg, bool | str | Place)):
            raise TypeError(f"Tensor.to() takes a device, a dtype or a Tensor, not {arg!r}")
    return x if dtype is None or x.dtype == dtype else cast(x, dtype)


def _is_type(name: str) -> bool:
    return any(kind.name == name.removeprefix("paddle.") for kind in types.ALL)


def place(x: Tensor) -> Place:
    """Where the array is; in a compiled function, where it will be."""
    value = x._value
    return place_of(default_device() if isinstance(value, Tracer) else next(iter(value.devices())))


def cpu(x: Tensor) -> Tensor:
    """The Tensor in the memory of the host."""
    if isinstance(x._value, Symbol | Tracer) or place(x).is_cpu_place():
        return x
    copy = wrap(jax.device_put(x._value, jax.devices("cpu")[0]))
    copy.stop_gradient, copy._node, copy._index = x.stop_gradient, x._node, x._index
    return copy


def _use_gpudnn(x: Tensor, use_gpudnn: bool = True) -> Tensor:
    """The Tensor itself: XLA chooses the kernels."""
    return x


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """The Tensor itself: jax keeps arrays on the accelerator where there is one."""
    return x


def pin_memory(x: Tensor, blocking: bool = True) -> Tensor:
    """The Tensor itself: jax pins what it copies."""
    return x


def fill_(x: Tensor, value: TensorLike) -> Tensor:
    """Make every element `value`; the gradient of what was there is zeros."""
    if not isinstance(value, int | float | complex | Tensor | np.generic | np.ndarray):
        raise ArgumentTypeError(
            "fill_ takes a number", where="paddle.Tensor.fill_", received=type(value).__name__
        )
    filled = full_like(x, value)
    return replace_value(x, filled if x._node is None else where(full_like(x, True, "bool"), filled, x))


def zero_(x: Tensor) -> Tensor:
    """Make every element 0; the gradient of what was there is zeros."""
    return fill_(x, 0)


def set_value(x: Tensor, value: TensorLike) -> None:
    """Replace the values, also those of a parameter, without a trace in the history.

    Raises:
        ShapeError: other shape, or a type other than that of `x`.
    """
    if isinstance(value, Tensor | np.ndarray | jax.Array):
        new = as_array(value)
    else:
        new = as_array(np.asarray(value), x.dtype)
    if new.shape != x._value.shape or new.dtype != x._value.dtype:
        raise AssertedError(
            "set_value keeps the shape and the type",
            where=f"set_value of {x.name}",
            received=f"{new.dtype}{list(new.shape)}",
            allowed=f"{x.dtype.name}{x.shape}",
        )
    x._value = new


def copy_(x: Tensor, other: Tensor, blocking: bool = True) -> Tensor:
    """Take over the values of `other`, in the type of `x`."""
    x._value = cast(other, x.dtype)._value
    x._version += 1
    return x


def reconstruct_from_(x: Tensor, other: Tensor) -> None:
    """Become `other`: values, type, history and whether a gradient is wanted."""
    x._value, x.stop_gradient = other._value, other.stop_gradient
    x._node, x._index = other._node, other._index


def detach_(x: Tensor) -> Tensor:
    """Drop the history, in place."""
    x._node, x._index, x.stop_gradient = None, 0, True
    return x


def gradient(x: Tensor) -> np.ndarray | None:
    """The gradient as a numpy array, None before `backward()`."""
    return None if x.grad is None else x.grad.numpy()


def get_strides(x: Tensor) -> list[int]:
    """How many elements lie between neighbours along each axis."""
    return list(strides_of(x))


def contiguous(x: Tensor) -> Tensor:
    """The Tensor itself; a copy where it is a view in another order than that of its memory."""
    return x if is_contiguous(x) else clone(x)


def astype(x: Tensor, dtype: object) -> Tensor:
    """`x` in another type."""
    return cast(x, dtype)


def _set_data(x: Tensor, other: Tensor) -> None:
    x._value = other._value
    x._version += 1


def _true(x: Tensor) -> bool:
    return True


def _false(x: Tensor) -> bool:
    return False


def _inplace_assign(tensor: Tensor, value: Tensor) -> Tensor:
    """The Tensor with the values, the shape and the history of another."""
    from framework.paddle.ops.creation import assign  # here: operations stand above

    return assign(value, tensor)


def _share_buffer_to(tensor: Tensor, other: Tensor) -> None:
    """Let another Tensor have the same memory; it keeps it where this one gets other values.

    Of as many values it keeps its own shape, as in Paddle: `weight.reshape([n, -1])` is drawn and shared back.
    """
    same_count = tensor.size == other.size and tensor.shape != other.shape
    other._value = (tensor.detach().reshape(other.shape) if same_count else tensor)._value


def _share_underline_tensor_to(tensor: Tensor, other: Tensor) -> None:
    """As `_share_buffer_to`, with the shape."""
    other._value = tensor._value


def _is_shared_buffer_with(tensor: Tensor, other: Tensor) -> bool:
    """Whether two Tensors have the same memory."""
    return tensor._value is other._value


def _bump_inplace_version(tensor: Tensor) -> None:
    """Count a change of the values in place."""
    tensor._version += 1


def _reset_grad_inplace_version(tensor: Tensor, set_to_zero: bool = False) -> None:
    """Forget, where `set_to_zero`, that the gradient was changed in place."""
    if set_to_zero and tensor._grad is not None:
        tensor._grad._version = 0


def _zero_grads(tensor: Tensor) -> None:
    """Set the gradient to zeros."""
    gradient = tensor.grad
    if gradient is not None:
        gradient._value = jnp.zeros_like(gradient._value)


def _copy_gradient_from(tensor: Tensor, other: Tensor) -> None:
    """Take the values of another Tensor as the gradient."""
    tensor.grad = wrap(other._value)


def _clear_data(tensor: Tensor) -> None:
    """Let the memory of the values go."""
    tensor._value = jnp.zeros((0,), tensor._value.dtype)


def _copy_to(tensor: Tensor, place: object, blocking: bool = True) -> Tensor:
    """A Tensor of the same values, as persistable and without history."""
    copy = wrap(tensor._value)
    copy.persistable = tensor.persistable
    return copy


def _slice_rows(tensor: Tensor, begin: int, end: int) -> Tensor:
    """The rows from `begin` to before `end`, without history."""
    return wrap(tensor._value[begin:end])


METHODS = {
    "astype": astype,
    "contiguous": contiguous,
    "copy_": copy_,
    "cpu": cpu,
    "cuda": cuda,
    "data_ptr": lambda x: x._value.unsafe_buffer_pointer(),
    "detach_": detach_,
    "dim": lambda x: x._value.ndim,
    "element_size": lambda x: x._value.dtype.itemsize,
    "fill_": fill_,
    "get_strides": get_strides,
    "get_tensor": lambda x: DenseTensor(x),
    "gradient": gradient,
    "is_contiguous": is_contiguous,
    "is_dense": _true,
    "is_dist": _false,
    "is_same_shape": lambda x, y: x.shape == y.shape,
    "is_selected_rows": _false,
    "is_sparse": _false,
    "is_sparse_coo": _false,
    "is_sparse_csr": _false,
    "ndimension": lambda x: x._value.ndim,
    "pin_memory": pin_memory,
    "reconstruct_from_": reconstruct_from_,
    "set_value": set_value,
    "to": to,
    "value": lambda x: x,  # Paddle's holder of the memory, with get_tensor(): a Tensor here, too
    "_to": to,
    "zero_": zero_,
    "__nonzero__": Tensor.__bool__,
    "__long__": Tensor.__int__,
    "_is_initialized": _true,
    "_inplace_assign": _inplace_assign,
    "_share_buffer_to": _share_buffer_to,
    "_share_underline_tensor_to": _share_underline_tensor_to,
    "_is_shared_buffer_with": _is_shared_buffer_with,
    "_is_shared_underline_tensor_with": _is_shared_buffer_with,
    "_inplace_version": lambda x: x.inplace_version,
    "_bump_inplace_version": _bump_inplace_version,
    "_reset_grad_inplace_version": _reset_grad_inplace_version,
    "_zero_grads": _zero_grads,
    "_copy_gradient_from": _copy_gradient_from,
    "_grad_value": lambda x: None if x.grad is None else DenseTensor(x.grad),
    "_copy_to": _copy_to,
    "_offset": lambda x: 0,
    "_clear": _clear_data,
    "_slice": _slice_rows,
    "_use_gpudnn": _use_gpudnn,
    "_grad_ivar": lambda x: x.grad,
    "_numel": lambda x: x.size,
}
PROPERTIES = {
    "T": property(lambda x: _reversed_axes(x)),
    "data": property(lambda x: x, _set_data),
    "grad_": property(lambda x: x.grad),
    "grad_fn": property(lambda x: x._node),
    "layout": property(lambda x: "NCHW"),
    "offset": property(lambda x: 0),
    "place": property(place),
    "strides": property(get_strides),
    "type": property(lambda x: "VarType.LOD_TENSOR"),
    "__array_ufunc__": None,  # numpy leaves `array + Tensor` to the Tensor
}


def install() -> None:
    """Give Tensor these attributes and methods."""
    for name, member in (*METHODS.items(), *PROPERTIES.items()):
        setattr(Tensor, name, member)
