"""paddle.distributed.io: parameters and inference programs of a run, whose tables lie in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.static import io as static_io
from framework.paddle.static.io import is_persistable as is_persistable

if TYPE_CHECKING:
    from framework.paddle.static.executor import Executor
    from framework.paddle.static.program import Program


def save_persistables(
    executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Write the persistable variables of a program, a file each or all in one."""
    static_io.save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def load_inference_model_distributed(
    dirname: str, executor: Executor, model_filename: str | None = None, params_filename: str | None = None
) -> list[object]:
    """[program, names of inputs, outputs] of what `fleet.save_inference_model` wrote; rows of tables are in it."""
    return static_io.load_inference_model(dirname, executor)


_complete(__name__)
