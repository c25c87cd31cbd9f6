"""What programs of jax may ask for besides computing with arrays: nothing but the functions that jax itself promises to
keep for programs that were exported."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from framework.core.errors import FormatError

if TYPE_CHECKING:
    from jax import export

# Names of jax._src.export's list of stable functions (jax 0.10), without those that carry a program of their own
# (`tpu_custom_call`, `mosaic_gpu_v2`, `tf.call_tf_function`). A callback into Python is none of them: its argument is
# an address, or the number of a function of the process that exported it.
_ALLOWED = re.compile(
    r"shape_assertion|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement|AllocateBuffer"
    r"|ApproxTopK|Eigh|LuDecomposition|ProductOfElementaryHouseholderReflectors|Qr"
    r"|stablehlo\.dynamic_(approx_top_k|reduce_window|rng_bit_generator|top_k)"
    r"|lapack_[a-z]+_ffi|(cusolver|cusparse|hipsolver)_[a-z0-9]+_ffi"
    r"|(cu|hip)_(lu_pivots_to_permutation|threefry2x32_ffi)"
)
_CALL = "stablehlo.custom_call"
_TARGET = re.compile(r'stablehlo\.custom_call @(?:"([^"]*)"|([\w.$-]+))')
_CHANNELS = ("infeed", "outfeed", "send", "recv")  # which wait for what nobody sends
_CHANNEL = re.compile(rf"\bstablehlo\.({'|'.join(_CHANNELS)})\b")


def check_calls(exported: export.Exported, data: bytes, file: Path) -> None:
    """Refuse a program that calls functions of the process, or that waits for others.

    Args:
        data: What it was read from. Names of operations stand in it as they are, so most programs are not parsed.

    Raises:
        FormatError: it names the functions. What MLIR raises: the program is damaged.
    """
    if not any(name.encode() in data for name in ("custom_call", *_CHANNELS)):
        return
    refused: Counter[str] = Counter()
    program: export.Exported | None = exported
    while program is not None:
        text = program.mlir_module()
        targets = [quoted or plain for quoted, plain in _TARGET.findall(text)]
        refused.update(name for name in targets if not _ALLOWED.fullmatch(name))
        refused.update(_CHANNEL.findall(text))
        if text.count(_CALL) != len(targets):
            refused["a call without a name"] += 1
        program = program.vjp() if program.has_vjp() else None
    if refused:
        raise FormatError(
            "the program calls functions that are not for programs from files",
            where=file,
            received=", ".join(f"{name}: {count} times" for name, count in sorted(refused.items())),
            allowed="arithmetic, and the linear algebra that jax exports",
            fix="export the model without callbacks into Python and without kernels of its own",
        )
