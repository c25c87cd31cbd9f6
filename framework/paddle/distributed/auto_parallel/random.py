"""Random numbers of Tensors that are cut over a mesh."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete


def parallel_manual_seed(seed: int, name: str = "") -> None:
    """Accepted: XLA draws the same numbers for a Tensor however it is cut, and from the stream of `paddle.seed`."""


_complete(__name__)
