"""Quantised checkpoints of Hugging Face folders as floats: `quantization_config` of config.json says which reader.

Arrays keep torch's names and layouts: what was `model.layers.0.mlp.up_proj.qweight` and its companions becomes
`model.layers.0.mlp.up_proj.weight` [out, in], made when it is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.core.bounded import SETTINGS, check_mapping, read_json
from framework.core.errors import FormatError
from framework.interop.weights.lazy_state import LazyArray, LazyState
from framework.interop.weights.packed_integers import GroupedMatrix, read_awq, read_compressed, read_gptq
from framework.interop.weights.scaled_floats import (
    FLOAT8,
    QUANT_STATE,
    bitsandbytes_shape,
    dequantize_bitsandbytes,
    dequantize_float8,
    dequantize_rows,
)

KEY = "quantization_config"
_FILES = ("quantize_config.json", "quant_config.json")
"""Where AutoGPTQ and AutoAWQ wrote the same before config.json had it."""
_UNUSED = (
    "input_scale",
    "output_scale",
    "k_scale",
    "v_scale",
    "weight_format",
    "input_zero_point",
    "output_zero_point",
)
"""Companions of matrices that say how activations are rounded."""
_GPTQ_BITS, _COMPRESSED_BITS = (2, 3, 4, 8), (2, 3, 4, 8)
_ARRAYS = {
    "gptq": ("qweight", "qzeros", "scales", "g_idx"),
    "awq": ("qweight", "qzeros", "scales"),
    "float8": ("weight", "weight_scale", "weight_scale_inv"),
    "compressed": (
        *("weight", "weight_packed", "weight_shape", "weight_scale", "weight_zero_point", "weight_g_idx"),
    ),
    "rows": ("weight", "SCB"),
}


@dataclass(frozen=True)
class QuantizedFile:
    """How the matrices of a checkpoint are quantised.

    Attributes:
        method: "gptq", "awq", "float8", "compressed" (whole numbers of compressed-tensors) or "bitsandbytes".
        bits: Of a whole number.
        where: For messages.
        version_2, symmetric: See `read_gptq`.
        block: (rows, columns) of a block of 8-bit floats that share a scale.
        int8_activations: The file says that activations are rounded to int8, a scale each token, before each product.
    """

    method: str
    bits: int = 8
    where: str = "config.json"
    version_2: bool = False
    symmetric: bool = False
    block: tuple[int, int] | None = None
    int8_activations: bool = False


def read_quantization(folder: Path, settings: Mapping[str, object]) -> Mapping[str, object] | None:
    """What a model's folder says of its quantisation: in config.json, or in a file of AutoGPTQ or AutoAWQ; None where
    it is not quantised. Raises: FormatError."""
    quantization = settings.get(KEY, settings.get("compression_config"))
    if quantization is not None:
        return check_mapping(quantization, folder / "config.json", KEY)
    for name in _FILES:
        if (folder / name).is_file():
            content = check_mapping(read_json(folder / name, SETTINGS, "config"), folder / name, "config")
            return {
                "quant_method": "awq" if "w_bit" in content or "q_group_size" in content else "gptq",
                **content,
            }
    return None


def parse_quantization(settings: Mapping[str, object], where: str = "config.json") -> QuantizedFile:
    """What a `quantization_config` comes to. Raises: FormatError, where no reader fits it."""
    method = str(settings.get("quant_method", "")).lower()
    if method == "gptq":
        bits = _bits(settings.get("bits"), _GPTQ_BITS, where)
        version = str(settings.get("checkpoint_format", "gptq")).lower()
        if version not in ("gptq", "gptq_v2"):
            raise _unknown(f"{where}: {KEY}.checkpoint_format", version, "gptq, gptq_v2")
        return QuantizedFile("gptq", bits, where, version == "gptq_v2", settings.get("sym") is True)
    if method == "awq":
        bits = _bits(settings.get("bits", settings.get("w_bit", 4)), (4,), where)
        version = str(settings.get("version", "gemm")).lower()
        if version != "gemm":
            raise _unknown(f"{where}: {KEY}.version", version, "gemm")
        return QuantizedFile("awq", bits, where)
    if method in ("fp8", "fbgemm_fp8"):
        return QuantizedFile("float8", 8, where, block=_block(settings.get("weight_block_size"), where))
    if method == "bitsandbytes":
        return QuantizedFile("bitsandbytes", 8 if settings.get("load_in_8bit") else 4, where)
    if method == "compressed-tensors":
        return _parse_compressed(settings, where)
    raise _unknown(
        f"{where}: {KEY}.quant_method",
        settings.get("quant_method"),
        "gptq, awq, fp8, bitsandbytes, compressed-tensors",
    )


def _parse_compressed(settings: Mapping[str, object], where: str) -> QuantizedFile:
    """compressed-tensors: all groups of layers have to be of one kind."""
    groups = check_mapping(settings.get("config_groups"), f"{where}: {KEY}", "config_groups")
    kinds = set()
    for group in groups.values():
        group = check_mapping(group, f"{where}: {KEY}", "group of layers")
        weights = check_mapping(group.get("weights"), f"{where}: {KEY}", "weights of a group")
        inputs = group.get("input_activations") or {}
        block = _block(weights.get("block_structure"), where)
        by_token = isinstance(inputs, Mapping) and bool(inputs.get("dynamic")) and inputs.get("num_bits") == 8
        kinds.add((str(weights.get("type", "int")), weights.get("num_bits"), by_token, block))
    if len(kinds) != 1:
        raise _unknown(
            f"{where}: {KEY}.config_groups", f"{len(kinds)} kinds of layers", "one kind for all layers"
        )
    ((kind, bits, by_token, block),) = kinds
    if kind == "float" and bits == 8:
        return QuantizedFile("float8", 8, where, block=block)
    if kind != "int":
        raise _unknown(f"{where}: {KEY}.config_groups", f"{kind} of {bits} bits", "int, or float of 8 bits")
    bits = _bits(bits, _COMPRESSED_BITS, where)
    return QuantizedFile("compressed", bits, where, int8_activations=by_token and bits == 8)


def dequantized_state(state: Mapping[str, np.ndarray], quantized: QuantizedFile) -> LazyState:
    """The state of a quantised checkpoint in floats: matrices are made when they are read, the others are as they are.

    Raises:
        FormatError: now, where an array of a matrix is missing; when it is read, where they do not fit one another.
    """
    arrays: dict[str, LazyArray] = {}
    for name, matrix in _matrices(state, quantized):
        arrays[f"{name}.weight"] = matrix
    companions = _companions(state, quantized)
    for name, array in state.items():
        owner, _, last = name.rpartition(".")
        if name not in companions and last not in _UNUSED:
            if array.dtype in FLOAT8 and f"{owner}.{last}" not in arrays:
                raise FormatError(
                    "a matrix of 8-bit floats has no scale",
                    where=f"{quantized.where}, {name}",
                    received=f"{array.dtype} {list(array.shape)}",
                    allowed=f"with {owner}.weight_scale or {owner}.weight_scale_inv",
                )
            arrays.setdefault(name, LazyArray(tuple(array.shape), lambda array=array: array))
    return LazyState({name: arrays[name] for name in sorted(arrays)})


def grouped_matrices(
    state: Mapping[str, np.ndarray], quantized: QuantizedFile
) -> dict[str, Callable[[], GroupedMatrix]]:
    """The matrices of whole numbers in a checkpoint, by the name of their layer; none of 8-bit floats and of
    bitsandbytes."""
    if quantized.method not in ("gptq", "awq", "compressed"):
        return {}
    return {
        owner: functools.partial(_read_grouped, _companions_of(state, owner, quantized), owner, quantized)
        for owner in _owners(state, quantized)
    }


def _owners(state: Mapping[str, np.ndarray], quantized: QuantizedFile) -> list[str]:
    """Names of the layers that are quantised."""
    marks = {
        "gptq": (".qweight",),
        "awq": (".qweight",),
        "float8": (".weight_scale", ".weight_scale_inv"),
        "compressed": (".weight_scale",),
    }.get(quantized.method, ())
    return [name.removesuffix(mark) for name in state for mark in marks if name.endswith(mark)]


def _companions_of(
    state: Mapping[str, np.ndarray], owner: str, quantized: QuantizedFile
) -> dict[str, np.ndarray]:
    names = _ARRAYS[quantized.method]
    return {name: state[f"{owner}.{name}"] for name in names if f"{owner}.{name}" in state}


def _companions(state: Mapping[str, np.ndarray], quantized: QuantizedFile) -> set[str]:
    """Names of all arrays that belong to quantised matrices."""
    if quantized.method == "bitsandbytes":
        blocks = tuple(f"{name.split(f'.{QUANT_STATE}')[0]}.weight" for name in state if QUANT_STATE in name)
        rows = {
            name.removesuffix("SCB") + last
            for name in state
            if name.endswith(".SCB")
            for last in _ARRAYS["rows"]
        }
        return rows | {
            name for name in state if name in blocks or name.rpartition(".weight.")[0] + ".weight" in blocks
        }
    names = _ARRAYS[quantized.method]
    return {f"{owner}.{name}" for owner in _owners(state, quantized) for name in names}


def _matrices(state: Mapping[str, np.ndarray], quantized: QuantizedFile) -> Iterator[tuple[str, LazyArray]]:
    """(name of the layer, its matrix)."""
    if quantized.method == "bitsandbytes":
        yield from _bitsandbytes(state)
        return
    for owner in _owners(state, quantized):
        companions = _companions_of(state, owner, quantized)
        _require(companions, owner, quantized)
        if quantized.method == "float8":
            weight = companions["weight"]
            scale = companions.get("weight_scale_inv", companions.get("weight_scale"))
            assert scale is not None  # the owner was found by it
            where = f"{quantized.where}, {owner}"
            make = functools.partial(dequantize_float8, weight, scale, where, quantized.block)
            yield owner, LazyArray(tuple(weight.shape), make)
        else:
            make = functools.partial(_dequantize_grouped, companions, owner, quantized)
            yield owner, LazyArray(_shape(companions, quantized), make)


def _bitsandbytes(state: Mapping[str, np.ndarray]) -> Iterator[tuple[str, LazyArray]]:
    for name, array in state.items():
        if name.endswith(".SCB"):
            owner = name.removesuffix(".SCB")
            weight = state.get(f"{owner}.weight")
            if weight is None:
                raise _missing(owner, "weight", "SCB")
            make = functools.partial(dequantize_rows, weight, array, owner)
            yield owner, LazyArray(tuple(weight.shape), make)
        elif f".{QUANT_STATE}" in name:
            owner = name.split(f".{QUANT_STATE}")[0]
            first = f"{owner}.weight"
            arrays = {
                key[len(owner) + 1 :]: state[key]
                for key in state
                if key == first or key.startswith(f"{first}.")
            }
            yield (
                owner,
                LazyArray(
                    bitsandbytes_shape(arrays, owner),
                    functools.partial(dequantize_bitsandbytes, arrays, owner),
                ),
            )


def _read_grouped(arrays: Mapping[str, np.ndarray], owner: str, quantized: QuantizedFile) -> GroupedMatrix:
    if quantized.method == "gptq":
        return read_gptq(arrays, owner, quantized.bits, quantized.version_2, quantized.symmetric)
    return (
        read_awq(arrays, owner)
        if quantized.method == "awq"
        else read_compressed(arrays, owner, quantized.bits)
    )


def _dequantize_grouped(arrays: Mapping[str, np.ndarray], owner: str, quantized: QuantizedFile) -> np.ndarray:
    return _read_grouped(arrays, owner, quantized).dequantize()


def _require(companions: Mapping[str, np.ndarray], owner: str, quantized: QuantizedFile) -> None:
    """Raises: FormatError, where an array is missing without which there is no matrix."""
    needed = {"gptq": ("qweight", "qzeros", "scales"), "awq": ("qweight", "scales"), "float8": ("weight",)}
    names = needed.get(quantized.method)
    if names is None:
        names = (
            "weight_packed" if quantized.bits != 8 or "weight" not in companions else "weight",
            "weight_scale",
        )
    for name in names:
        if name not in companions:
            raise _missing(owner, name, next(iter(companions)))


def _shape(arrays: Mapping[str, np.ndarray], quantized: QuantizedFile) -> tuple[int, ...]:
    """(out, in) of a matrix of whole numbers, before it is made."""
    if quantized.method == "compressed":
        if "weight" in arrays:
            return tuple(arrays["weight"].shape)
        packed, shape = arrays["weight_packed"], arrays.get("weight_shape")
        if shape is not None and shape.size == 2:
            return int(shape.ravel()[0]), int(shape.ravel()[1])
        return (*packed.shape[:1], packed.shape[-1] * 32 // quantized.bits)
    words = arrays["qweight"]
    if words.ndim != 2:
        return tuple(words.shape)
    rows, columns = words.shape
    return (columns, rows * 32 // quantized.bits) if quantized.method == "gptq" else (columns * 8, rows)


def _bits(value: object, allowed: Sequence[int], where: str) -> int:
    if not isinstance(value, int) or value not in allowed:
        raise _unknown(f"{where}: bits of {KEY}", value, ", ".join(map(str, allowed)))
    return value


def _block(value: object, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    sizes = tuple(value) if isinstance(value, list) else ()
    if len(sizes) != 2 or not all(isinstance(n, int) and 0 < n <= 1 << 20 for n in sizes):
        raise _unknown(f"{where}: weight_block_size", value, "[rows, columns], such as [128, 128]")
    return sizes[0], sizes[1]


def _unknown(where: str, received: object, allowed: str) -> FormatError:
    return FormatError(
        "weights that are quantised like this are not read",
        where=where,
        received=repr(received)[:120],
        allowed=allowed,
        fix="take the model's own weights in bfloat16, and quantise them here: oar quantize FOLDER",
    )


def _missing(owner: str, name: str, present: str) -> FormatError:
    return FormatError(
        "an array of a quantised matrix is missing",
        where=owner,
        received=f"{owner}.{present} without {owner}.{name}",
        allowed="all arrays of the matrix",
        fix="the files are of different saves, or quantization_config is of another model: fetch them again",
    )
