"""What packages ask Paddle's tracer of operations for: how AMP casts, and whether operations are recorded."""

from __future__ import annotations

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.base.core import AmpLevel


class Tracer:
    """The settings under which operations run now."""

    @property
    def _amp_level(self) -> AmpLevel:
        """That of `auto_cast`; O0 outside of it, and where it does nothing."""
        return AmpLevel[mode.amp_level]

    @property
    def _amp_dtype(self) -> str:
        """The type that operations are cast to, float32 where they are not."""
        return mode.amp_dtype

    @property
    def _has_grad(self) -> bool:
        """Whether operations are recorded."""
        return mode.grad_enabled

    @_has_grad.setter
    def _has_grad(self, recorded: bool) -> None:
        mode.grad_enabled = recorded


_complete(__name__)
