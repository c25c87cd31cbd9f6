"""paddle.onnx: a Layer as an ONNX file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.core.errors import ConfigError
from framework.paddle._kernel.modules import resolver as _resolver

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor
    from framework.paddle.jit.spec import InputSpec
    from framework.paddle.nn.layer import Layer

_log = logging.getLogger("oar")
_CHECKS = ("enable_onnx_checker", "auto_upgrade_opset", "verbose")
"""Settings that change no file: it is compared with the layer always."""


def export(
    layer: Layer,
    path: str,
    input_spec: Sequence[InputSpec | Tensor] | None = None,
    opset_version: int = 9,
    **configs: object,
) -> None:
    """Write `path`.onnx: the layer in eval mode, compared with it in ONNX Runtime before.

    Args:
        input_spec: An InputSpec or Tensor for each input; without it, as of `paddle.jit.save`.
        opset_version: 18 is the least that is written; of a lower one the log says so.

    Raises:
        ConfigError: a setting that is not known. TraceError: an operation has no form in ONNX, or the program hangs on
            values. MissingExtraError: onnx or onnxruntime is not installed.
    """
    from framework.export.formats.onnx.model import LEAST_OPSET
    from framework.paddle.jit.save import write_onnx_file

    if unknown := [name for name in configs if name not in _CHECKS]:
        raise ConfigError(
            "a setting that is not known",
            where="paddle.onnx.export",
            received=", ".join(unknown),
            allowed=", ".join(_CHECKS),
        )
    if opset_version < LEAST_OPSET:
        _log.info(f"{path}.onnx: written for opset {LEAST_OPSET}, the least there is, not {opset_version}")
    write_onnx_file(
        layer, f"{str(path).removesuffix('.onnx')}.onnx", input_spec, max(opset_version, LEAST_OPSET)
    )


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
