"""paddle.onnx: what to do instead of exporting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.core.errors import OarError
from framework.paddle._kernel.modules import resolver as _resolver

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor
    from framework.paddle.jit.spec import InputSpec
    from framework.paddle.nn.layer import Layer


def export(
    layer: Layer,
    path: str,
    input_spec: Sequence[InputSpec | Tensor] | None = None,
    opset_version: int = 9,
    **configs: object,
) -> None:
    """Raises: OarError: programs are StableHLO here, for which there is no way to ONNX."""
    raise OarError(
        "there is no export to ONNX",
        where=f"paddle.onnx.export({path!r})",
        allowed="StableHLO: paddle.jit.save writes a folder that runs on CPU, GPU and TPU without the model's code",
        fix="paddle.jit.save(layer, path, input_spec) and paddle.inference or `oar predict`",
    )


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
