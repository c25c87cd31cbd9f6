"""paddle.device.xpu: jax drives no XPU; what there is to wait for is the work of the default device."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.device.streams import synchronize as synchronize

_complete(__name__)
