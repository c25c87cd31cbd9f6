"""paddle.framework.random: the random state, and the seed of static programs."""

from __future__ import annotations

from framework.core.process_state import state
from framework.paddle._kernel.random import Generator as Generator
from framework.paddle._kernel.random import get_cuda_rng_state as get_cuda_rng_state
from framework.paddle._kernel.random import get_rng_state as get_rng_state
from framework.paddle._kernel.random import seed as seed
from framework.paddle._kernel.random import set_cuda_rng_state as set_cuda_rng_state
from framework.paddle._kernel.random import set_rng_state as set_rng_state


def _manual_program_seed(seed: int) -> None:
    """Every parameter that is made from now on starts from this seed: equal shapes and initializers get equal values,
    as the operations of Paddle's programs do that have a seed. 0: each parameter draws its own values again."""
    state.program_seed = int(seed)
