"""Programs written for parameter servers, on processes without servers.

Tables and dense parameters lie in the workers. `a_sync` and geo are simulated: each worker trains its own copy, and the
copies are averaged every `k_steps` steps (every step where `a_sync` is off or k_steps is 0 or less). It is said once.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from framework.core.errors import InputError
from framework.distributed import collectives
from framework.paddle.distributed import env

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.strategy import DistributedStrategy
    from framework.paddle.static.executor import Executor
    from framework.paddle.static.program import Program, Variable

log = logging.getLogger("oar")
_FILE = "persistables.pdparams"


class ServerRun:
    """The state of a program for parameter servers.

    Attributes:
        interval: Steps between two averages of the workers' copies.
    """

    def __init__(self, strategy: DistributedStrategy) -> None:
        steps = int(strategy.a_sync_configs["k_steps"]) if strategy.a_sync else 0
        self.interval, self.steps = max(1, steps), 0
        if env.get_world_size() > 1:
            kind = "geo" if steps > 0 else "async" if strategy.a_sync else "sync"
            log.info(
                f"there are no parameter servers: {kind} is simulated, the parameters of {env.get_world_size()} "
                f"workers are averaged every {self.interval} steps"
            )

    def after_step(self, program: Program) -> None:
        """Average the workers' parameters where it is time; all workers do as many steps."""
        self.steps += 1
        if env.get_world_size() > 1 and self.steps % self.interval == 0:
            self.average(program, True)

    @staticmethod
    def average(program: Program, working: bool) -> bool:
        """The mean of the parameters of all workers that still train; whether any of them does.

        Args:
            working: Whether this one does; one that has no data left takes the mean of the others.
        """
        count = int(np.asarray(collectives.all_reduce(np.int32(working))))
        if count == 0:
            return False
        for parameter in program.all_parameters():
            share = parameter._value if working else jnp.zeros_like(parameter._value)
            parameter._value = jnp.asarray(collectives.all_reduce(share) / count, parameter._value.dtype)
        return True


def is_server() -> bool:
    """Whether the launcher started this process as a server."""
    return os.environ.get("TRAINING_ROLE", "TRAINER") == "PSERVER"


def run_server() -> None:
    """A server has nothing to do: tables lie in the workers."""
    log.info("there are no parameter servers: this process has nothing to do and ends")


def save_persistables(
    executor: Executor | None, dirname: str, main_program: Program | None = None, mode: int = 0
) -> None:
    """Write parameters, tables and the state of optimizers to a folder; worker 0 does. Every `mode` writes all."""
    from framework import paddle

    program = main_program or paddle.static.default_main_program()
    if env.get_rank() == 0:
        Path(dirname).mkdir(parents=True, exist_ok=True)
        paddle.save(program.state_dict(), str(Path(dirname) / _FILE))


def load_model(path: str, mode: int = 0) -> None:
    """Read what `save_persistables` wrote into the main program.

    Raises:
        InputError: there is nothing of it.
    """
    from framework import paddle

    file = Path(path) / _FILE
    if not file.is_file():
        raise InputError(
            "there is no model of save_persistables", where=path, allowed=f"a folder with {_FILE}"
        )
    paddle.static.default_main_program().set_state_dict(paddle.load(str(file)))


def init_server(dirname: str | None = None, var_names: object = None, **kwargs: object) -> None:
    """Nothing to begin; a folder of `save_persistables` is where training goes on from."""
    if dirname:
        load_model(dirname)


def save_inference_model(
    executor: Executor,
    dirname: str,
    feeded_var_names: list[str],
    target_vars: list[Variable],
    main_program: Program | None = None,
    export_for_deployment: bool = True,
    mode: int = 0,
) -> None:
    """Write what computes `target_vars`, with the rows of tables that it looks up, as an artifact; worker 0 does."""
    from framework import paddle

    program = main_program or paddle.static.default_main_program()
    if env.get_rank() == 0:
        feeds = [program.data[name] for name in feeded_var_names]
        paddle.static.save_inference_model(dirname, feeds, target_vars, executor, program=program)


def do_nothing(*args: object, **kwargs: object) -> None:
    """What is told to servers, of which there are none."""
