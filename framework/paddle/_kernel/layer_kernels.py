"""Kernels of `paddle._C_ops` whose arguments or results differ from those of the public functions that run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jax.numpy as jnp
import numpy as np

from framework import paddle
from framework.interop.weights.pdparams import DTYPES
from framework.paddle._kernel import dtypes
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.operators import run_operator
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle.nn import functional as F

_FFTS = ("fftn", "ifftn", "rfftn", "ihfftn", "hfftn", "irfftn")


def embedding(x: Tensor, weight: Tensor, padding_idx: int = -1, sparse: bool = False) -> Tensor:
    """Rows of `weight`; -1 is no padding."""
    return F.embedding(x, weight, None if padding_idx == -1 else padding_idx, sparse)


def dropout(
    x: Tensor,
    seed_tensor: Tensor | None,
    p: float | Tensor,
    is_test: bool,
    mode: str,
    seed: int,
    fix_seed: bool,
) -> tuple[Tensor, Tensor]:
    """(x with zeros, where it is none)."""
    share = float(p)
    out = F.dropout(x, share, training=not is_test, mode=mode)
    if is_test or share == 0:
        return out, paddle.ones_like(x).astype("uint8")
    return out, paddle.logical_or(
        paddle.cast(out, "bool"), paddle.logical_not(paddle.cast(x, "bool"))
    ).astype("uint8")


def cross_entropy_with_softmax(
    input: Tensor,
    label: Tensor,
    soft_label: bool = False,
    use_softmax: bool = True,
    numeric_stable_mode: bool = True,
    ignore_index: int = -100,
    axis: int = -1,
) -> tuple[Tensor, Tensor]:
    """(softmax, loss); the loss keeps `axis` with the size 1."""
    softmax = F.softmax(input, axis) if use_softmax else input
    loss = F.cross_entropy(
        input,
        label,
        ignore_index=ignore_index,
        reduction="none",
        soft_label=soft_label,
        axis=axis,
        use_softmax=use_softmax,
    )
    return softmax, loss if loss.ndim == input.ndim else loss.unsqueeze(axis)


def sigmoid_cross_entropy_with_logits(
    x: Tensor,
    label: Tensor,
    pos_weight: Tensor | None = None,
    normalize: bool = False,
    ignore_index: int = -100,
) -> Tensor:
    """The loss of each element, 0 where the label is `ignore_index`; normalized by the number of the others.

    `pos_weight` is a factor of log(1 + exp(-|x|)) alone: the public function hands over another one than it is given.
    """
    rest = F.softplus(-paddle.abs(x))
    loss = F.relu(x) - x * label + (rest if pos_weight is None else rest * pos_weight)
    valid = paddle.not_equal(label, paddle.full_like(label, ignore_index)).astype(loss.dtype)
    return loss * valid / paddle.clip(valid.sum(), min=1e-5) if normalize else loss * valid


def bce_loss(input: Tensor, label: Tensor) -> Tensor:
    """The binary cross entropy of each element."""
    return F.binary_cross_entropy(input, label, reduction="none")


def huber_loss(input: Tensor, label: Tensor, delta: float = 1.0) -> tuple[Tensor, Tensor]:
    """(loss of each element, label - input)."""
    residual = label - input
    size = residual.abs()
    return paddle.where(size <= delta, residual * residual * 0.5, (size - delta / 2) * delta), residual


def kldiv_loss(x: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """The divergence of `label` from exp(x)."""
    return F.kl_div(x, label, reduction)


def nll_loss(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tuple[Tensor, Tensor]:
    """(loss, the sum of the weights of the labels)."""
    counted = paddle.not_equal(label, paddle.full_like(label, ignore_index))
    total = counted.astype(input.dtype)
    if weight is not None:
        total = total * weight[paddle.where(counted, label, paddle.zeros_like(label))]
    return F.nll_loss(input, label, weight, ignore_index, reduction), total.sum()


def warpctc(
    logits: Tensor,
    label: Tensor,
    logits_length: Tensor | None = None,
    labels_length: Tensor | None = None,
    blank: int = 0,
    norm_by_times: bool = False,
) -> Tensor:
    """The CTC loss [N, 1] of logits [T, N, C]."""
    loss = F.ctc_loss(logits, label, logits_length, labels_length, blank, "none", norm_by_times)
    return loss.reshape([-1, 1])


def warprnnt(
    input: Tensor,
    label: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    fastemit_lambda: float = 0.0,
    num_threads: int = 0,
) -> Tensor:
    """The transducer's loss of each sequence."""
    return F.rnnt_loss(input, label, input_lengths, label_lengths, blank, fastemit_lambda, "none")


def accuracy(x: Tensor, indices: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(the share of rows whose label is among `indices`, their number, all rows)."""
    hits = (
        paddle.equal(indices, label.astype(indices.dtype).reshape([-1, 1])).any(axis=1).astype("int32").sum()
    )
    total = paddle.full([], x.shape[0], "int32")
    return (hits.astype("float32") / x.shape[0]), hits, total


def squared_l2_norm(x: Tensor) -> Tensor:
    """The sum of squares, [1]."""
    return (x * x).sum().reshape([1])


def frobenius_norm(x: Tensor, axis: Sequence[int], keep_dim: bool, reduce_all: bool) -> Tensor:
    """The root of the sum of squares over `axis`."""
    return (x * x).sum(None if reduce_all or not axis else list(axis), keepdim=keep_dim).sqrt()


def mean_all(x: Tensor) -> Tensor:
    """The mean of all elements."""
    return x.mean()


def clip_by_norm(x: Tensor, max_norm: float) -> Tensor:
    """`x` scaled down to the norm `max_norm` where it is longer."""
    norm = (x * x).sum().sqrt()
    return paddle.where(norm > max_norm, x * (max_norm / norm), x)


def logcumsumexp(
    x: Tensor, axis: int = -1, flatten: bool = False, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """The logarithm of running sums of exponentials."""
    if flatten:
        x, axis = x.flatten(), 0
    x = x.flip(axis) if reverse else x
    out = paddle.logcumsumexp(x, axis)
    if exclusive:
        first = paddle.full_like(
            paddle.slice(out, [axis], [0], [1]), float(np.finfo(str(x.numpy().dtype)).min)
        )
        out = paddle.concat([first, paddle.slice(out, [axis], [0], [x.shape[axis] - 1])], axis)
    return out.flip(axis) if reverse else out


def spectral_norm(
    weight: Tensor, u: Tensor, v: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12
) -> Tensor:
    """`weight` divided by its greatest singular value, which `power_iters` iterations estimate from `u` and `v`."""
    order = [dim, *(axis for axis in range(weight.ndim) if axis != dim)]
    matrix = weight.transpose(order).reshape([weight.shape[dim], -1])
    with paddle.no_grad():
        left, right = u.reshape([-1]), v.reshape([-1])
        for _ in range(power_iters):
            right = matrix.t() @ left
            right = right / (right.norm() + eps)
            left = matrix @ right
            left = left / (left.norm() + eps)
    return weight / (left.unsqueeze(0) @ matrix @ right.unsqueeze(1)).reshape([])


def fft_c2c(x: Tensor, axes: Sequence[int], normalization: str, forward: bool) -> Tensor:
    """The transform of complex numbers over `axes`."""
    return getattr(paddle.fft, _FFTS[0] if forward else _FFTS[1])(
        x, None, axes, _norm(normalization, forward)
    )


def fft_r2c(x: Tensor, axes: Sequence[int], normalization: str, forward: bool, onesided: bool) -> Tensor:
    """The transform of real numbers; `onesided`: the half that says all."""
    if not onesided:
        return fft_c2c(
            x.astype("complex128" if x.dtype.name == "float64" else "complex64"), axes, normalization, forward
        )
    return getattr(paddle.fft, _FFTS[2] if forward else _FFTS[3])(
        x, None, axes, _norm(normalization, forward)
    )


def fft_c2r(
    x: Tensor, axes: Sequence[int], normalization: str, forward: bool, last_dim_size: int = 0
) -> Tensor:
    """Real numbers from the half of a transform; the last axis has `last_dim_size` of them."""
    sizes = [x.shape[axis] for axis in axes]
    sizes[-1] = last_dim_size or 2 * (sizes[-1] - 1)
    name = _FFTS[4] if forward else _FFTS[5]
    return getattr(paddle.fft, name)(x, sizes, axes, _norm(normalization, forward))


def _norm(normalization: str, forward: bool) -> str:
    """Kernels say what divides; the public functions say in which direction."""
    if normalization == "by_sqrt_n":
        return "ortho"
    return "forward" if (normalization == "by_n") == forward else "backward"


def assign_value_(
    output: Tensor, shape: Sequence[int], dtype: object, values: Sequence[float], place: object = None
) -> Tensor:
    """`output` becomes these numbers in this shape and type."""
    return _become(output, np.asarray(values).reshape(tuple(shape)), dtype)


def full_(
    output: Tensor, shape: Sequence[int], value: float, dtype: object = None, place: object = None
) -> Tensor:
    """`output` becomes one number everywhere in this shape and type."""
    return _become(output, np.full(tuple(shape), value), dtype)


def _become(output: Tensor, values: np.ndarray, kind: object) -> Tensor:
    dtype = output.dtype if kind is None else dtypes.dtype(kind) if isinstance(kind, int) else kind
    output._value = paddle.to_tensor(values.astype(dtypes.to_numpy(dtype)))._value
    output._version += 1
    return output


def check_finite_and_unscale_(x: Sequence[Tensor], scale: Tensor) -> tuple[Sequence[Tensor], Tensor]:
    """(`x` divided by `scale` in place, whether a number of it is not finite); from such a Tensor on, times 0."""
    infinite = False
    for one in x:
        infinite = infinite or not bool(paddle.isfinite(one).all())
        one.set_value(one * 0 if infinite else one / scale.astype(one.dtype))
    return x, wrap(jnp.asarray([infinite]))


def update_loss_scaling_(
    x: Sequence[Tensor],
    found_infinite: Tensor,
    prev_loss_scaling: Tensor,
    in_good_steps: Tensor,
    in_bad_steps: Tensor,
    incr_every_n_steps: int,
    decr_every_n_nan_or_inf: int,
    incr_ratio: float,
    decr_ratio: float,
    stop_update: bool | Tensor = False,
) -> tuple[Sequence[Tensor], Tensor, Tensor, Tensor]:
    """(x, scale, good steps, bad steps), changed in place: gradients that are not finite become zeros."""
    if bool(found_infinite):
        for one in x:
            one.set_value(paddle.zeros_like(one))
    if bool(stop_update):
        return x, prev_loss_scaling, in_good_steps, in_bad_steps
    scale, good, bad = (float(one) for one in (prev_loss_scaling, in_good_steps, in_bad_steps))
    if bool(found_infinite):
        good, bad = 0, bad + 1
        if bad == decr_every_n_nan_or_inf:
            scale, bad = max(scale * decr_ratio, 1.0), 0
    else:
        good, bad = good + 1, 0
        if good == incr_every_n_steps:
            scale, good = scale * incr_ratio if np.isfinite(np.float32(scale * incr_ratio)) else scale, 0
    for tensor, number in ((prev_loss_scaling, scale), (in_good_steps, good), (in_bad_steps, bad)):
        tensor.set_value(np.full(tuple(tensor.shape), number, tensor.numpy().dtype))
    return x, prev_loss_scaling, in_good_steps, in_bad_steps


def truncated_gaussian_random(
    shape: Sequence[int],
    mean: float,
    std: float,
    seed: int,
    dtype: DTypeLike | int = "float32",
    place: object = None,
) -> Tensor:
    """Normal numbers within two deviations of the mean."""
    name = str(DTYPES[dtype]) if isinstance(dtype, int) else dtype
    initializer = paddle.nn.initializer.TruncatedNormal(mean, std)
    return paddle.create_parameter(list(shape), name, default_initializer=initializer).detach()


def coalesce_tensor(
    input: Sequence[Tensor],
    dtype: object,
    copy_data: bool = False,
    set_constant: bool = False,
    persist_output: bool = False,
    constant: float = 0.0,
    use_align: bool = True,
    align_size: int = -1,
    size_of_dtype: int = -1,
    concated_shapes: Sequence[int] = (),
    concated_ranks: Sequence[int] = (),
) -> tuple[list[Tensor], Tensor]:
    """(the Tensors, one flat Tensor of all of them); each begins at a multiple of 256 bytes with `use_align`."""
    segments = []
    for one in input:
        flat = paddle.full_like(one, constant).flatten() if set_constant else one.flatten()
        step = (256 if align_size < 0 else align_size) // one.numpy().itemsize if use_align else 1
        rest = -flat.shape[0] % max(step, 1)
        segments += [flat, paddle.zeros([rest], flat.dtype)] if rest else [flat]
    outputs = [paddle.full_like(one, constant) if set_constant else one.clone() for one in input]
    return outputs, paddle.concat(segments)


def repeat_interleave_with_tensor_index(x: Tensor, repeats: Tensor, axis: int) -> Tensor:
    """Each entry along `axis` as often as `repeats` says."""
    return paddle.repeat_interleave(x, repeats, axis)


def fused_softmax_mask_upper_triangle(X: Tensor) -> Tensor:
    """The softmax of each row up to the diagonal."""
    return paddle.incubate.softmax_mask_fuse_upper_triangle(X)


def roi_pool(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor | None,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
) -> tuple[Tensor, None]:
    """(the greatest value of each cell of each box, None)."""
    size = (pooled_height, pooled_width)
    return paddle.vision.ops.roi_pool(x, boxes, boxes_num, size, spatial_scale), None


def psroi_pool(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor,
    pooled_height: int = 1,
    pooled_width: int = 1,
    output_channels: int = 1,
    spatial_scale: float = 1.0,
) -> Tensor:
    """The mean of each cell of each box, from channels of its own."""
    size = (pooled_height, pooled_width)
    return paddle.vision.ops.psroi_pool(x, boxes, boxes_num, size, spatial_scale)


def fill_(x: Tensor, value: float = 0) -> Tensor:
    """Write one number into all of `x`."""
    x.set_value(paddle.full_like(x, value))
    return x


def hardtanh_(x: Tensor, t_min: float = 0, t_max: float = 24) -> Tensor:
    """`x` between two numbers, in place."""
    return F.hardtanh_(x, t_min, t_max)


def pool3d(
    x: Tensor,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    ceil_mode: bool,
    exclusive: bool,
    data_format: str,
    pooling_type: str,
    global_pooling: bool,
    adaptive: bool,
    padding_algorithm: str,
) -> Tensor:
    """The greatest value or the mean of each window."""
    axes = (1, 2, 3) if data_format == "NDHWC" else (2, 3, 4)
    average = pooling_type == "avg"
    if global_pooling:
        return x.mean(axes, keepdim=True) if average else x.max(axes, keepdim=True)
    if adaptive:
        if average:
            return F.adaptive_avg_pool3d(x, kernel_size, data_format)
        return F.adaptive_max_pool3d(x, kernel_size)
    padding = padding_algorithm if padding_algorithm != "EXPLICIT" else list(paddings)
    if average:
        return F.avg_pool3d(x, kernel_size, strides, padding, ceil_mode, exclusive, None, data_format)
    return F.max_pool3d(x, kernel_size, strides, padding, ceil_mode=ceil_mode, data_format=data_format)


def max_pool3d_with_index(
    x: Tensor,
    kernel_size: Sequence[int],
    strides: Sequence[int] = (1, 1, 1),
    paddings: Sequence[int] = (0, 0, 0),
    global_pooling: bool = False,
    adaptive: bool = False,
) -> tuple[Tensor, Tensor]:
    """(the greatest value of each window, its position)."""
    if adaptive:
        return cast("tuple[Tensor, Tensor]", F.adaptive_max_pool3d(x, kernel_size, True))
    if global_pooling:
        kernel_size, paddings = x.shape[2:], (0, 0, 0)
    pooled = F.max_pool3d(x, kernel_size, strides, list(paddings), return_mask=True)
    return cast("tuple[Tensor, Tensor]", pooled)


def rnn(
    x: Tensor,
    pre_state: Sequence[Tensor | Sequence[Tensor]],
    weight_list: Sequence[Tensor],
    sequence_length: Tensor | None,
    dropout_state_in: Tensor | None,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    input_size: int = 10,
    hidden_size: int = 100,
    num_layers: int = 1,
    mode: str = "RNN_TANH",
    seed: int = 0,
    is_test: bool = False,
) -> tuple[Tensor, Tensor | None, list[Tensor], None]:
    """(outputs [T, N, C], `dropout_state_in`, last states, nothing for the backward run)."""
    states = [one for state in pre_state for one in ([state] if isinstance(state, Tensor) else state)]
    slots = {"Input": [x], "PreState": states, "WeightList": list(weight_list)}
    if sequence_length is not None:
        slots["SequenceLength"] = [sequence_length]
    settings: dict[str, object] = {
        "dropout_prob": dropout_prob,
        "is_bidirec": is_bidirec,
        "num_layers": num_layers,
        "mode": mode,
        "is_test": is_test,
    }
    results = run_operator("rnn", slots, settings, {"Out": 1, "State": len(states)})
    return results["Out"][0], dropout_state_in, results["State"], None
