"""paddle.distributed.parallel_helper: whether init_parallel_env was called."""

from __future__ import annotations

from framework.core.process_state import state


def _is_parallel_ctx_initialized() -> bool:
    return state.parallel_started
