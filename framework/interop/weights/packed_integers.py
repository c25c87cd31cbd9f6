"""Matrices of few bits in the files of GPTQ and AWQ, and of compressed-tensors, which vLLM's tools write.

A matrix is whole numbers [out, in], and for each group of inputs a scale and a zero point: w = (q - zero) * scale.

Reference: the layers of AutoGPTQ and GPTQModel (`qweight`, `qzeros`, `scales`, `g_idx`), `WQLinear_GEMM` of AutoAWQ,
    `pack_to_int32` of compressed-tensors
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from framework.core.errors import FormatError

log = logging.getLogger("oar")
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Column of eight that the nibbles of a word hold, the lowest nibble first."""
_WORD = 32


@dataclass(frozen=True)
class GroupedMatrix:
    """A matrix of few bits.

    Attributes:
        levels: [out, in] uint8, or int8.
        scale: [out, groups] float32.
        zero: [out, groups] float32, whole numbers.
        groups: [in] int32: the group of each input; None: groups of equal length, one after the other.
    """

    levels: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    groups: np.ndarray | None = None

    @property
    def group_size(self) -> int | None:
        """Inputs of a group; None: the groups differ in length."""
        inputs, count = self.levels.shape[1], self.scale.shape[1]
        if (
            self.groups is not None
            and not (np.bincount(self.groups, minlength=count) * count == inputs).all()
        ):
            return None
        return None if inputs % count else inputs // count

    @property
    def order(self) -> np.ndarray | None:
        """[in]: the inputs of the first group, of the second and so on; None: they stand in order."""
        return None if self.groups is None else np.argsort(self.groups, kind="stable")

    def dequantize(self) -> np.ndarray:
        """[out, in] float32."""
        inputs = self.levels.shape[1]
        if self.groups is not None:
            return (self.levels.astype(np.float32) - self.zero[:, self.groups]) * self.scale[:, self.groups]
        levels = self.levels.reshape(len(self.levels), -1, inputs // self.scale.shape[1]).astype(np.float32)
        return ((levels - self.zero[..., None]) * self.scale[..., None]).reshape(self.levels.shape)


def unpack_bits(words: np.ndarray, bits: int) -> np.ndarray:
    """[n, m] int32 -> [n, m * 32 / bits] uint8: the words of a row as one sequence of bits, the lowest first."""
    stream = np.unpackbits(np.ascontiguousarray(words, "<i4").view(np.uint8), axis=1, bitorder="little")
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return (stream.reshape(len(words), -1, bits) * weights).sum(-1, dtype=np.uint8)


def pack_bits(levels: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of `unpack_bits`: [n, m] uint8 -> [n, m * bits / 32] int32."""
    stream = levels[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(stream.reshape(len(levels), -1), axis=1, bitorder="little").view("<i4")


def read_gptq(
    arrays: Mapping[str, np.ndarray], where: str, bits: int, version_2: bool, symmetric: bool
) -> GroupedMatrix:
    """A matrix of GPTQ.

    Args:
        arrays: `qweight` [in * bits / 32, out], `qzeros` [groups, out * bits / 32], `scales` [groups, out], and, where
            there is one, `g_idx` [in].
        bits: 2, 3, 4 or 8.
        version_2: Zero points stand as they are; before, one less is stored.
        symmetric: All zero points are the middle. Some files of GPTQModel say version 1 and hold the middle itself,
            which shows only here.

    Raises:
        FormatError: the shapes do not belong together, or an input is in a group that is not there.
    """
    words, zeros, scales = (arrays[name] for name in ("qweight", "qzeros", "scales"))
    _check(
        words.ndim == 2 and words.dtype == np.int32, where, "qweight", words, "int32 [in * bits / 32, out]"
    )
    _check(words.shape[0] * _WORD % bits == 0, where, "qweight", words, f"whole numbers of {bits} bits")
    inputs, outputs = words.shape[0] * _WORD // bits, words.shape[1]
    _check_scales(scales, where, outputs, inputs)
    count = scales.shape[0]
    expected = (count, outputs * bits // _WORD)
    _check(zeros.shape == expected and zeros.dtype == np.int32, where, "qzeros", zeros, f"int32 {expected}")
    levels = unpack_bits(np.ascontiguousarray(words.T), bits)
    zero = unpack_bits(zeros, bits).astype(np.float32)
    middle = 1 << bits - 1
    if symmetric and not version_2 and bool((zero == middle).all()):
        log.warning(
            "%s: the zero points are %d in all groups, which is what version 2 of the format holds for a symmetric "
            "matrix; the file says version 1 and is taken for version 2",
            *(where, middle),
        )
        version_2 = True
    groups = arrays.get("g_idx")
    if groups is not None:
        _check(
            groups.shape == (inputs,) and bool((groups >= 0).all() and (groups < count).all()),
            where,
            "g_idx",
            groups,
            f"[{inputs}] numbers below {count}",
        )
    matrix = GroupedMatrix(levels, scales.T.astype(np.float32), (zero if version_2 else zero + 1).T)
    if groups is not None and not (inputs % count == 0 and _is_in_order(groups, inputs // count)):
        return replace(matrix, groups=groups.astype(np.int32))
    _check(
        inputs % count == 0, where, "scales", scales, f"groups of equal length of {inputs} inputs, or a g_idx"
    )
    return matrix


def read_awq(arrays: Mapping[str, np.ndarray], where: str) -> GroupedMatrix:
    """A matrix of AWQ's version "gemm", 4 bits: `qweight` [in, out / 8], `qzeros` [groups, out / 8] (absent where there
    are no zero points), `scales` [groups, out].

    Raises:
        FormatError: the shapes do not belong together.
    """
    words, scales = arrays["qweight"], arrays["scales"]
    _check(words.ndim == 2 and words.dtype == np.int32, where, "qweight", words, "int32 [in, out / 8]")
    inputs, outputs = words.shape[0], words.shape[1] * 8
    _check_scales(scales, where, outputs, inputs)
    _check(
        inputs % scales.shape[0] == 0, where, "scales", scales, f"groups of equal length of {inputs} inputs"
    )
    zeros = arrays.get("qzeros")
    if zeros is None:
        zero = np.full(scales.shape, 8, np.uint8)
    else:
        expected = (scales.shape[0], words.shape[1])
        _check(
            zeros.shape == expected and zeros.dtype == np.int32, where, "qzeros", zeros, f"int32 {expected}"
        )
        zero = _awq_columns(zeros)
    return GroupedMatrix(
        np.ascontiguousarray(_awq_columns(words).T), scales.T.astype(np.float32), zero.T.astype(np.float32)
    )


def read_compressed(arrays: Mapping[str, np.ndarray], where: str, bits: int) -> GroupedMatrix:
    """A matrix of compressed-tensors: `weight_packed` int32 [out, in * bits / 32] with `weight_shape`, or `weight` int8
    [out, in]; `weight_scale` [out, groups] or [1]; `weight_zero_point` (int8, or packed along its first axis) where it
    is asymmetric.

    Raises:
        FormatError: the shapes do not belong together.
    """
    middle = 1 << bits - 1
    if (packed := arrays.get("weight_packed")) is not None:
        shape = arrays.get("weight_shape")
        _check(
            packed.ndim == 2 and packed.dtype == np.int32, where, "weight_packed", packed, "int32 [out, …]"
        )
        inputs = (
            int(np.ravel(shape)[-1]) if shape is not None and shape.size else packed.shape[1] * _WORD // bits
        )
        levels = _unpack_words(packed, bits)
        _check(
            0 < inputs <= levels.shape[1], where, "weight_shape", packed, f"at most {levels.shape[1]} inputs"
        )
        levels = np.ascontiguousarray(levels[:, :inputs])
    else:
        weight = arrays["weight"]
        _check(weight.ndim == 2 and weight.dtype == np.int8, where, "weight", weight, "int8 [out, in]")
        levels, middle = weight, 0
    scale = np.asarray(arrays["weight_scale"], np.float32)
    outputs, inputs = levels.shape
    scale = np.broadcast_to(scale.reshape(1, 1), (outputs, 1)) if scale.size == 1 else scale
    scale = scale.reshape(-1, 1) if scale.ndim == 1 else scale
    _check(
        scale.ndim == 2 and len(scale) == outputs and scale.shape[1] > 0 and inputs % scale.shape[1] == 0,
        where,
        "weight_scale",
        scale,
        f"[{outputs}, groups of equal length]",
    )
    zero = np.full(scale.shape, middle, np.float32)
    points = arrays.get("weight_zero_point")
    if points is not None:
        if points.dtype == np.int32 and points.shape != scale.shape:
            points = _unpack_words(np.ascontiguousarray(points.T), bits).T[:outputs].astype(np.int16) - middle
        _check(points.size in (1, scale.size), where, "weight_zero_point", points, str(scale.shape))
        zero = zero + np.broadcast_to(
            points.reshape(1, 1) if points.size == 1 else points.reshape(scale.shape), scale.shape
        )
    groups = arrays.get("weight_g_idx")
    if groups is not None and not _is_in_order(groups, inputs // scale.shape[1]) and not (groups == -1).all():
        _check(
            groups.shape == (inputs,) and bool((groups >= 0).all() and (groups < scale.shape[1]).all()),
            where,
            "weight_g_idx",
            groups,
            f"[{inputs}] numbers below {scale.shape[1]}",
        )
        return GroupedMatrix(levels, scale, zero, groups.astype(np.int32))
    return GroupedMatrix(levels, scale, zero)


def _unpack_words(words: np.ndarray, bits: int) -> np.ndarray:
    """[n, m] int32 -> [n, m * (32 // bits)]: each word alone, so that 3 bits leave two unused."""
    shifts = np.arange(_WORD // bits, dtype=np.uint32) * np.uint32(bits)
    levels = words.view(np.uint32)[..., None] >> shifts & np.uint32((1 << bits) - 1)
    return levels.astype(np.uint8).reshape(len(words), -1)


def _awq_columns(words: np.ndarray) -> np.ndarray:
    """[n, m] int32 -> [n, 8 m] uint8."""
    columns = np.empty((*words.shape, 8), np.uint8)
    for nibble, column in enumerate(_AWQ_ORDER):
        columns[..., column] = words >> (4 * nibble) & 15
    return columns.reshape(len(words), -1)


def _is_in_order(groups: np.ndarray, size: int) -> bool:
    return bool((groups == np.arange(len(groups)) // max(size, 1)).all())


def _check_scales(scales: np.ndarray, where: str, outputs: int, inputs: int) -> None:
    _check(
        scales.ndim == 2 and scales.shape[1] == outputs and 0 < scales.shape[0] <= inputs,
        where,
        "scales",
        scales,
        f"[groups, {outputs}]",
    )


def _check(fits: bool, where: str, name: str, array: np.ndarray, allowed: str) -> None:
    """Raises: FormatError, where an array of a matrix does not fit the others."""
    if not fits:
        raise FormatError(
            "the arrays of a quantised matrix do not belong together",
            where=f"{where}.{name}",
            received=f"{array.dtype} {list(array.shape)}",
            allowed=allowed,
            fix="the bits in quantization_config are not those of the file, or the file was changed: fetch both again",
        )
