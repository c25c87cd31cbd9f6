"""What is left of Paddle's transpiler: functions that have changed nothing since Paddle 1.6."""

from __future__ import annotations

import logging

from framework.paddle._kernel.modules import complete as _complete

log = logging.getLogger("oar")


def memory_optimize(
    input_program: object,
    skip_opt_set: object = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Changes nothing and says so, as in Paddle; XLA frees values after their last use."""
    log.warning("paddle.distributed.transpiler.memory_optimize is deprecated and changes nothing")


def release_memory(input_program: object, skip_opt_set: object = None) -> None:
    """Changes nothing and says so, as in Paddle."""
    log.warning("paddle.distributed.transpiler.release_memory is deprecated and changes nothing")


_complete(__name__)
