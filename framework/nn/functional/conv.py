"""Convolutions: NHWC activations, Paddle's weight layouts.

Weights: conv [out, in/groups, kh, kw] (OIHW), transposed conv [in, out/groups, kh, kw] (IOHW).
Every function is one named, cached jit, so an eager call costs a dispatch. See lowering.py for the forms on a CPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.axes import per_axis
from framework.core.dtypes import precision, wide_type
from framework.core.errors import ShapeError
from framework.nn.functional import conv_groups, lowering, winograd
from framework.nn.functional.channel_sums import channel_sums
from framework.nn.functional.common import transpose_hint
from framework.nn.functional.lowering import Platform, choose, conv_plan
from framework.nn.functional.products import add_bias, product
from framework.nn.functional.windows import Edges, Padding, spatial_padding, transposed_padding

Pair = tuple[int, int]
Pads = tuple[Pair, Pair]
Operands = tuple[jax.Array, jax.Array]  # x and the weight, or their derivatives


def pair(value: int | Sequence[int], name: str = "value") -> Pair:
    """(h, w) from one number or two."""
    h, w = per_axis(value, 2, name)
    return h, w


def _image_pads(edges: Edges) -> Pads:
    rows, columns = edges
    return rows, columns


def check_conv(where: str, x: jax.Array, weight: jax.Array, groups: int, transposed: bool = False) -> None:
    """Refuse an input or a weight [out, in/groups, *kernel], transposed [in, out/groups, *kernel], that do not agree.

    Raises:
        ShapeError: naming `where`, both shapes, and the transposition when x is channels-first.
    """
    axes = int(where[4])  # of conv2d: two
    channels = 0 if weight.ndim < 2 else weight.shape[0] if transposed else weight.shape[1] * groups
    right_ranks = x.ndim == weight.ndim == axes + 2
    if right_ranks and x.shape[-1] == channels and weight.shape[0] % groups == 0:
        return
    size, kernel = {1: ("T", "k"), 2: ("H, W", "kh, kw"), 3: ("D, H, W", "kd, kh, kw")}[axes]
    channels_in = channels if weight.ndim == axes + 2 else "in"
    raise ShapeError(
        f"{where}: input, weight and groups do not agree",
        received=f"x {x.shape}, weight {weight.shape}, groups {groups}",
        allowed=f"x [N, {size}, {channels_in}], weight [{'in, out' if transposed else 'out, in'}/groups, {kernel}], "
        f"{'in' if transposed else 'out'} divisible by groups",
        fix=transpose_hint(x, channels),
    )


def flat_padding(padding: int | str | Sequence[int]) -> Padding:
    """The padding of one axis, p, [p] or [left, right], as that of an image of one row."""
    if isinstance(padding, str):
        return padding
    return ((0, 0), (padding, padding) if isinstance(padding, int) else tuple(padding) * (3 - len(padding)))


# -- convolution --------------------------------------------------------------------------------------------------


def shift_views(
    x: jax.Array, kernel: tuple[int, ...], stride: Pair, dilation: Pair, out: tuple[int, ...]
) -> list[jax.Array]:
    """The kh*kw shifted views of a padded [N, H, W, C] array, each [N, oh, ow, C]."""
    (sh, sw), (dh, dw) = stride, dilation
    n, _, _, c = x.shape
    return [
        lax.slice(
            x,
            (0, i * dh, j * dw, 0),
            (n, i * dh + (out[0] - 1) * sh + 1, j * dw + (out[1] - 1) * sw + 1, c),
            (1, sh, sw, 1),
        )
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]


def out_size(
    size: tuple[int, ...], kernel: tuple[int, ...], stride: Pair, dilation: Pair, pads: Pads
) -> Pair:
    """(height, width) behind a convolution or pooling; sizes may be symbolic."""
    return tuple(  # type: ignore[return-value]
        (n + p[0] + p[1] - (k - 1) * d - 1) // s + 1
        for n, k, s, d, p in zip(size, kernel, stride, dilation, pads)
    )


def pad_edges(x: jax.Array, pads: Pads, value: float = 0.0) -> jax.Array:
    """Zero-padded on H and W, cut where a pad is negative, behind a barrier: without it XLA recomputes the pad for
    every shifted view."""
    if pads == ((0, 0), (0, 0)):
        return x
    edges = [(0, 0, 0), (*pads[0], 0), (*pads[1], 0), (0, 0, 0)]
    return lax.optimization_barrier(lax.pad(x, jnp.asarray(value, x.dtype), edges))


def _hwio(w: jax.Array) -> jax.Array:
    """Weights OIHW as [kh, kw, in/groups, out], always the first step: an exported program has them so in memory, and
    XLA sees the two transpositions cancel only where nothing is between them."""
    return w.transpose(2, 3, 1, 0)


def _channels_last(w: jax.Array) -> jax.Array:
    """Depthwise weights [C, 1, kh, kw] as [kh, kw, C] in memory, not read with a stride in the inner loop."""
    return lax.optimization_barrier(_hwio(w)[:, :, 0])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _depthwise(x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair) -> jax.Array:
    """Depthwise convolution as a sum of shifted multiply-adds; w is [kh, kw, C]."""
    kernel = w.shape[:2]
    out = out_size(x.shape[1:3], kernel, stride, dilation, pads)
    views = shift_views(pad_edges(x, pads), kernel, stride, dilation, out)
    taps = w.reshape(-1, w.shape[2])
    return functools.reduce(jnp.add, [view * taps[t] for t, view in enumerate(views)])


def _depthwise_bwd(stride: Pair, pads: Pads, dilation: Pair, saved: Operands, dy: jax.Array) -> Operands:
    x, w = saved
    kernel = w.shape[:2]
    size = x.shape[1:3]
    views = shift_views(pad_edges(x, pads), kernel, stride, dilation, dy.shape[1:3])
    wide = [(view * dy).astype(wide_type(dy.dtype)) for view in views]
    # A row of the kernel in one pass: more sums at a time do not fit into the registers.
    rows = [channel_sums(wide[at : at + kernel[1]]) for at in range(0, len(wide), kernel[1])]
    dw = jnp.stack([total for row in rows for total in row]).reshape(w.shape).astype(w.dtype)
    if stride == (1, 1):
        # The flipped kernel over dy, padded so that every input pixel is met: out = size.
        back = [((k - 1) * d - p[0], (k - 1) * d - p[1]) for k, d, p in zip(kernel, dilation, pads)]
        if all(b >= 0 for edge in back for b in edge):
            return _depthwise(dy, w[::-1, ::-1], (1, 1), (back[0], back[1]), dilation), dw
    taps = w.reshape(-1, w.shape[2])
    return gather_taps((dy,), lambda a, tap: a[0] * taps[tap], kernel, stride, pads, dilation, size), dw


def gather_taps(
    arrays: Sequence[jax.Array],
    part: Callable[[Sequence[jax.Array], int], jax.Array],
    kernel: tuple[int, ...],
    stride: Pair,
    pads: Pads,
    dilation: Pair,
    size: tuple[int, ...],
) -> jax.Array:
    """The transpose of `shift_views` for any stride: [N, *size, C]; a pixel sums its parts of all windows it is in.

    `arrays` have one value for each window, [N, oh, ow, C]; `part(arrays, tap)` is what a window gives to its pixel at
    this tap, and 0 for a window of zeros, whatever else is in the arrays. Phase by phase, a phase being the pixels
    y = s*q + a: tap i meets row s*o + i*d - pad of the input in row o of the output, so phase a sees the taps with
    (i*d - pad - a) divisible by s, each shifted by that quotient. Every phase is a sum of shifted views, and the phases
    are interleaved at the end; nothing is scattered.
    """
    n, *out, c = arrays[0].shape
    counts = [-(-length // s) for length, s in zip(size, stride)]  # rows and columns of a phase
    # For each axis and phase the taps that meet it, with the row of the windows that its row 0 reads.
    met = [
        [
            [(i, (a + pad[0] - i * d) // s) for i in range(k) if (a + pad[0] - i * d) % s == 0]
            for a in range(s)
        ]
        for k, s, d, pad in zip(kernel, stride, dilation, pads)
    ]
    starts = [[start for phase in axis for _, start in phase] for axis in met]
    low = [max(-min(axis), 0) for axis in starts]
    high = [max(max(axis) + count - o, 0) for axis, count, o in zip(starts, counts, out)]
    arrays = [pad_edges(array, ((low[0], high[0]), (low[1], high[1]))) for array in arrays]

    def phase(rows: list[tuple[int, int]], columns: list[tuple[int, int]]) -> jax.Array:
        total = jnp.zeros((n, *counts, c), arrays[0].dtype)
        for i, top in rows:
            for j, left in columns:
                at = (top + low[0], left + low[1])
                views = [
                    lax.slice(array, (0, *at, 0), (n, at[0] + counts[0], at[1] + counts[1], c))
                    for array in arrays
                ]
                total = total + part(views, i * kernel[1] + j)
        return total

    lines = [jnp.stack([phase(rows, columns) for columns in met[1]], 3) for rows in met[0]]
    grid = jnp.stack(lines, 2).reshape(n, counts[0] * stride[0], counts[1] * stride[1], c)
    return grid[:, : size[0], : size[1]]


_depthwise.defvjp(lambda x, w, *geometry: (_depthwise(x, w, *geometry), (x, w)), _depthwise_bwd)


def _space_to_depth(x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair) -> jax.Array:
    """A strided convolution of few channels as one of stride 1 on blocks of pixels stacked into channels.

    Each block of sh x sw pixels becomes one pixel of sh*sw*C channels, and the kernel is laid out over blocks.
    """
    (sh, sw), (kh, kw) = stride, w.shape[2:]
    n, _, _, c = x.shape
    oh, ow = out_size(x.shape[1:3], (kh, kw), stride, dilation, pads)
    bh, bw = -(-kh // sh), -(-kw // sw)  # blocks that a kernel reaches
    rows, columns = oh + bh - 1, ow + bw - 1
    edges = [
        (pad[0], blocks * s - size - pad[0], 0)
        for pad, blocks, s, size in zip(pads, (rows, columns), stride, x.shape[1:3])
    ]
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *edges, (0, 0, 0)])
    x = x.reshape(n, rows, sh, columns, sw, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, rows, columns, -1)
    kernel = jnp.pad(_hwio(w), ((0, bh * sh - kh), (0, bw * sw - kw), (0, 0), (0, 0)))
    kernel = kernel.reshape(bh, sh, bw, sw, c, w.shape[0]).transpose(0, 2, 1, 3, 4, 5)
    return lax.conv_general_dilated(
        x,
        kernel.reshape(bh, bw, sh * sw * c, w.shape[0]),
        (1, 1),
        ((0, 0), (0, 0)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _is_smaller(size: tuple[int, ...], kernel: tuple[int, ...]) -> bool:
    """Whether an image, whose sizes may be symbolic, has fewer pixels than a kernel has taps."""
    return all(isinstance(n, int) for n in size) and math.prod(size) < math.prod(kernel)


def _plain_cpu(
    x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair, groups: int
) -> jax.Array:
    """XLA's convolution as a CPU computes it fast. It takes an image smaller than the kernel for the kernel, which
    Eigen has no form for: 2x3x256 to 256 takes 4.4 ms so, and 0.4 where the image is padded before."""
    if _is_smaller(x.shape[1:3], w.shape[2:]):
        x, pads = pad_edges(x, pads), ((0, 0), (0, 0))
    return _plain(x, w, stride, pads, dilation, groups)


def _plain(x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair, groups: int) -> jax.Array:
    wide = jnp.float32 if x.dtype in (jnp.bfloat16, jnp.float16) else None
    return lax.conv_general_dilated(
        x,
        _hwio(w),
        stride,
        pads,
        rhs_dilation=dilation,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
        preferred_element_type=wide if groups == 1 else None,
    ).astype(x.dtype)


def _pointwise(x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, low: bool) -> jax.Array:
    """A 1x1 convolution as a dot on [N*H*W, C]; a stride drops pixels first."""
    x = pad_edges(x, pads)
    if stride != (1, 1):
        x = x[:, :: stride[0], :: stride[1]]
    n, h, width, c = x.shape
    y = product("mk,kn->mn", x.reshape(-1, c), _hwio(w)[0, 0], low)
    return y.reshape(n, h, width, w.shape[0])


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def _winograd(x: jax.Array, w: jax.Array, pads: Pads, dilation: Pair, at_once: int | None) -> jax.Array:
    """A 3x3 convolution of stride 1. Where a derivative is taken all is plain: in a training step of ResNet50 this form
    saves nothing."""
    apart, columns_apart = dilation
    height, width = out_size(x.shape[1:3], (3, 3), (1, 1), dilation, pads)
    fill = winograd.blocks_of(width, columns_apart) * winograd.OUTPUTS * columns_apart - width
    below = -height % apart if apart > 1 else 0
    x = pad_edges(x, ((pads[0][0], pads[0][1] + below), (pads[1][0], pads[1][1] + fill)))
    if apart == 1:
        return winograd.convolve(x, _hwio(w), (height, width), at_once, columns_apart)
    # Rows that a kernel sees together are images of their own.
    n, rows, *line = x.shape
    x = x.reshape(n, rows // apart, apart, *line).swapaxes(1, 2).reshape(n * apart, rows // apart, *line)
    lines = (height + below) // apart
    y = winograd.convolve(x, _hwio(w), (lines, width), at_once, columns_apart)
    y = y.reshape(n, apart, *y.shape[1:]).swapaxes(1, 2)
    return y.reshape(n, lines * apart, width, -1)[:, :height]


def _3x3(x: jax.Array, w: jax.Array, pads: Pads, dilation: Pair) -> jax.Array:
    return _plain_cpu(x, w, (1, 1), pads, dilation, 1)


@_winograd.defjvp
def _winograd_jvp(
    pads: Pads, dilation: Pair, at_once: int | None, primals: Operands, tangents: Operands
) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(lambda x, w: _3x3(x, w, pads, dilation), primals, tangents)


def _conv_3x3(x: jax.Array, w: jax.Array, pads: Pads, dilation: Pair, folds: bool) -> jax.Array:
    """A 3x3 convolution of stride 1 with half of the multiplications where that is faster, and never in 16 bits, which
    have no digits to spare. Where sizes are symbolic both forms are in the program, and compiling chooses one; dilated
    kernels are plain there."""
    images, (height, width) = x.shape[0], out_size(x.shape[1:3], (3, 3), (1, 1), dilation, pads)
    pixels, is_dilated = math.prod((height, width)), dilation != (1, 1)
    least, most = winograd.worthwhile(x.shape[3], w.shape[0], folds)
    if x.dtype in (jnp.bfloat16, jnp.float16) or least > most:
        return _3x3(x, w, pads, dilation)
    if isinstance(images, int) and isinstance(pixels, int):
        if is_dilated:
            images *= dilation[0]
            lines = -(-height // dilation[0])
            filled = winograd.blocks_of(width, dilation[1]) * winograd.OUTPUTS * dilation[1]
            if lines * dilation[0] * filled > winograd.MOST_FILLED * pixels:
                return _3x3(x, w, pads, dilation)
            pixels = lines * filled
        at_once = winograd.images_at_once(images, pixels, x.shape[3], w.shape[0], folds)
        return _winograd(x, w, pads, dilation, at_once) if at_once else _3x3(x, w, pads, dilation)
    if is_dilated:
        return _3x3(x, w, pads, dilation)
    total = jnp.asarray(images * pixels)
    forms = (lambda x, w: _winograd(x, w, pads, dilation, None), lambda x, w: _3x3(x, w, pads, dilation))
    return lax.cond((least <= total) & (total <= most), *forms, x, w)


def _group_blocks(
    x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair, groups: int
) -> jax.Array:
    """A convolution in groups as ones without."""
    if not conv_groups.groups_of_block(groups, w.shape[1]):
        return _plain(x, w, stride, pads, dilation, groups)
    if _is_smaller(x.shape[1:3], w.shape[2:]):
        x, pads = pad_edges(x, pads), ((0, 0), (0, 0))
    wide = jnp.float32 if x.dtype in (jnp.bfloat16, jnp.float16) else None

    def convolve(images: jax.Array, kernel: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            images,
            kernel,
            stride,
            pads,
            rhs_dilation=dilation,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=wide,
        )

    return conv_groups.in_blocks(x, _hwio(w), groups, convolve).astype(x.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4, 5))
def _group_sums(
    x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair, groups: int
) -> jax.Array:
    """A convolution of small groups as sums of products. Where a derivative is taken it is one in blocks."""
    kernel = w.shape[2:]
    out = out_size(x.shape[1:3], kernel, stride, dilation, pads)

    def views(image: jax.Array) -> list[jax.Array]:
        return shift_views(image, kernel, stride, dilation, out)

    return conv_groups.as_sums(pad_edges(x, pads), _hwio(w), groups, views)


@_group_sums.defjvp
def _group_sums_jvp(
    stride: Pair, pads: Pads, dilation: Pair, groups: int, primals: Operands, tangents: Operands
) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(lambda x, w: _group_blocks(x, w, stride, pads, dilation, groups), primals, tangents)


def _in_groups(
    x: jax.Array, w: jax.Array, stride: Pair, pads: Pads, dilation: Pair, groups: int
) -> jax.Array:
    is_small = math.prod(w.shape[1:]) <= conv_groups.MOST_TERMS and x.dtype == jnp.float32
    return (_group_sums if is_small else _group_blocks)(x, w, stride, pads, dilation, groups)


def _used_taps(
    size: tuple[int, ...], kernel: tuple[int, ...], stride: Pair, pads: Pads, dilation: Pair
) -> tuple[tuple[slice, slice], Pads]:
    """The rows and columns of a kernel between those that meet nothing but padding, and the padding that is then left,
    which may be negative: of a 3x3 kernel dilated by 12 on a map of 8x8 there is one tap."""
    slices: list[slice] = []
    rest: list[Pair] = []
    for n, k, s, d, (before, behind) in zip(size, kernel, stride, dilation, pads):
        if not isinstance(n, int):
            slices.append(slice(0, k))
            rest.append((before, behind))
            continue
        last = (n + before + behind - (k - 1) * d - 1) // s * s  # where the last window begins
        used = [i for i in range(k) if i * d + last >= before and i * d < before + n]
        low, high = (used[0], used[-1] + 1) if used else (0, k)
        slices.append(slice(low, high))
        rest.append((before - low * d, behind - (k - high) * d))
    return (slices[0], slices[1]), (rest[0], rest[1])


@functools.partial(jax.jit, static_argnames=("stride", "pads", "dilation", "groups", "on", "low", "folds"))
def _conv2d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Pair,
    pads: Pads,
    dilation: Pair,
    groups: int,
    on: Platform,
    low: bool,
    folds: bool,
) -> jax.Array:
    def plain(x: jax.Array, w: jax.Array) -> jax.Array:
        if low and x.dtype == jnp.float32 and groups == 1:
            wide = _plain(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), stride, pads, dilation, groups)
            return wide.astype(jnp.float32)
        return _plain(x, w, stride, pads, dilation, groups)

    if on != "graph" and dilation != (1, 1):
        (rows, columns), pads = _used_taps(x.shape[1:3], weight.shape[2:], stride, pads, dilation)
        weight = weight[:, :, rows, columns]
    plan = conv_plan(x.shape[3], weight.shape[2:], groups, weight.shape[0], stride, dilation)
    if plan == "pointwise" and on != "graph" and stride == (1, 1):
        y = _pointwise(x, weight, stride, pads, low)  # as good on every platform
    else:
        on_cpu: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
            "depthwise": lambda x, w: _depthwise(x, _channels_last(w), stride, pads, dilation),
            "groups": lambda x, w: _in_groups(x, w, stride, pads, dilation, groups),
            "space_to_depth": lambda x, w: _space_to_depth(x, w, stride, pads, dilation),
            "winograd": lambda x, w: _conv_3x3(x, w, pads, dilation, folds),
            # bfloat16 convolutions are slow on a CPU: there only dots run in low precision.
            "plain": lambda x, w: _plain_cpu(x, w, stride, pads, dilation, groups),
            # Never on a GPU with a stride: XLA of jaxlib 0.11 ends the process where a dot takes every second pixel.
            "pointwise": plain if on == "graph" else lambda x, w: _pointwise(x, w, stride, pads, low),
        }
        # Programs of low precision keep the weights of their dots in bfloat16.
        y = choose(on, on_cpu[plan], plain, x, weight.astype(x.dtype))
    return y if bias is None else add_bias(y, bias)


def conv2d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> jax.Array:
    """2-D convolution. x [N, H, W, in], weight [out, in/groups, kh, kw], bias [out] -> [N, oh, ow, out].

    Raises:
        ShapeError: ranks or channels do not agree.
    """
    check_conv("conv2d", x, weight, groups)
    kernel, strides, dilations = weight.shape[2:], pair(stride, "stride"), pair(dilation, "dilation")
    pads = _image_pads(spatial_padding(padding, kernel, strides, x.shape[1:3], dilations))
    for n, k, d, edges in zip(x.shape[1:3], kernel, dilations, pads):
        if isinstance(n, int) and n + sum(edges) < (k - 1) * d + 1:
            raise ShapeError(
                "conv2d: the kernel is larger than the padded image",
                received=f"x {x.shape}, kernel {kernel}, dilation {dilations}, padding {pads}",
                allowed=f"at least {(k - 1) * d + 1} pixels, padding included",
            )
    low = precision() == "bfloat16"
    scopes = lowering.platform(), low, lowering.folds_weights()
    return _conv2d(x, weight, bias, strides, pads, dilations, groups, *scopes)


def conv1d(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int = 1,
    groups: int = 1,
) -> jax.Array:
    """1-D convolution. x [N, T, in], weight [out, in/groups, k] -> [N, ot, out]."""
    check_conv("conv1d", x, weight, groups)
    y = conv2d(
        x[:, None], weight[:, :, None], bias, (1, stride), flat_padding(padding), (1, dilation), groups
    )
    return y[:, 0]


# -- transposed convolution ---------------------------------------------------------------------------------------


def transposed_windows(
    x: jax.Array,
    kernel: jax.Array,
    stride: Sequence[int],
    edges: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
    on: Platform,
) -> jax.Array:
    """A convolution of x [N, ..., C] with `stride - 1` zeros between its pixels. kernel [..., in / groups, out]."""
    axes = len(stride)
    if groups > 1 and on != "graph":  # cuDNN refuses groups of a dilated input, so the zeros are written out
        zeros = [(low, high, step - 1) for (low, high), step in zip(edges, stride)]
        # Behind a barrier, or XLA makes them a dilation again.
        x = lax.optimization_barrier(lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *zeros, (0, 0, 0)]))
        stride, edges = (1,) * axes, ((0, 0),) * axes
    letters = "DHW"[-axes:]
    return lax.conv_general_dilated(
        x,
        kernel,
        (1,) * axes,
        edges,
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
        feature_group_count=groups,
    )


@functools.partial(
    jax.jit, static_argnames=("stride", "pads", "output_padding", "dilation", "groups", "low", "on")
)
def _conv2d_transpose(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Pair,
    pads: Pads,
    output_padding: Pair,
    dilation: Pair,
    groups: int,
    low: bool,
    on: Platform,
) -> jax.Array:
    channels, per_group, kh, kw = weight.shape
    n, h, w, _ = x.shape
    blocks = (
        (kh, kw) == stride and dilation == (1, 1) and pads == ((0, 0), (0, 0)) and output_padding == (0, 0)
    )
    if blocks and groups == 1:
        # Windows do not overlap: one dot to kh*kw*out values a pixel, then pixels become blocks.
        table = weight.transpose(0, 2, 3, 1).reshape(channels, -1)
        y = product("mk,kn->mn", x.reshape(-1, channels), table, low)
        y = y.reshape(n, h, w, kh, kw, per_group).transpose(0, 1, 3, 2, 4, 5)
        y = y.reshape(n, h * kh, w * kw, per_group)
    else:
        flipped = weight[:, :, ::-1, ::-1].reshape(groups, channels // groups, per_group, kh, kw)
        flipped = flipped.transpose(3, 4, 1, 0, 2).reshape(kh, kw, channels // groups, groups * per_group)
        edges = [
            ((k - 1) * d - p[0], (k - 1) * d - p[1] + extra)
            for k, d, p, extra in zip((kh, kw), dilation, pads, output_padding)
        ]
        y = transposed_windows(x, flipped, stride, edges, dilation, groups, on)
    return y if bias is None else add_bias(y, bias)


def conv2d_transpose(
    x: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_size: int | Sequence[int] | None = None,
) -> jax.Array:
    """Transposed convolution, the gradient of conv2d. x [N, H, W, in], weight [in, out/groups, kh, kw].

    The output has (size - 1) * stride - pads + dilation * (kernel - 1) + 1 + output_padding rows and columns;
    `output_size` chooses among the sizes that a stride leaves open, instead of `output_padding`.
    """
    check_conv("conv2d_transpose", x, weight, groups, transposed=True)
    strides, dilations = pair(stride, "stride"), pair(dilation, "dilation")
    pads = _image_pads(spatial_padding(padding, weight.shape[2:], strides, None, dilations))
    extra = pair(output_padding, "output_padding")
    if output_size is not None:
        geometry = (weight.shape[2:], strides, pads, dilations, extra)
        extra = pair(transposed_padding("conv2d_transpose", x.shape[1:3], *geometry, output_size))
    low, on = precision() == "bfloat16", lowering.platform()
    return _conv2d_transpose(x, weight, bias, strides, pads, extra, dilations, groups, low, on)
