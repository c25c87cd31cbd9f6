"""paddle.static.amp.decorate: an optimizer that trains a program in mixed precision."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.amp import casting, lists
from framework.paddle.amp.grad_scaler import GradScaler
from framework.paddle.static import backward as programs
from framework.paddle.static.amp.lists import AutoMixedPrecisionLists
from framework.paddle.static.program import (
    Op,
    Program,
    StepOp,
    Variable,
    default_main_program,
    program_of,
)

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer

Pairs = Sequence[tuple[Parameter, Variable]]


class ScaledStepOp(StepOp):
    """A step of an optimizer on gradients of a scaled loss; it changes nothing where one is not finite."""

    def __init__(self, optimizer: Optimizer, pairs: Pairs, scaler: GradScaler) -> None:
        super().__init__(optimizer, pairs)
        self.scaler = scaler

    def _step(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()


class OptimizerWithMixedPrecision:
    """An optimizer that lets the program of its loss compute in 16 bits, and scales the loss; what else is asked of it
    is the optimizer's.

    Parameters stay float32 and are cast where they are used. As `paddle.amp`, it casts nothing on a CPU.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        amp_lists: AutoMixedPrecisionLists | None,
        level: str,
        dtype: str,
        scaler: GradScaler,
        use_promote: bool,
    ) -> None:
        self._optimizer, self._scaler = optimizer, scaler
        self._scaled_loss: Tensor | None = None
        custom = amp_lists or AutoMixedPrecisionLists(dtype=dtype)
        white, black = lists.our_names(custom.custom_white), lists.our_names(custom.custom_black)
        sensitive = {"O1": lists.BLACK, "O2": lists.BLACK_O2}.get(level, frozenset())
        policy = casting.Policy(
            types.to_numpy(dtype),
            (lists.WHITE | white) - black,
            (sensitive | black) - white,
            level != "O2" or use_promote,
        )
        self._policy = None if level == "O0" else policy

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_optimizer"], name)

    def get_loss_scaling(self) -> Tensor:
        """The factor of the loss now. Raises: AssertionError: `minimize` was not called yet."""
        assert self._scaled_loss is not None, "Please call minimize() before calling get_loss_scaling()."
        return self._scaler._scale

    def get_scaled_loss(self) -> Tensor | None:
        """The variable of the scaled loss; None before `minimize`."""
        return self._scaled_loss

    def amp_init(
        self,
        device: object,
        scope: object = None,
        test_program: Program | None = None,
        use_fp16_test: bool = False,
        rewrite_master_weight: bool = False,
    ) -> None:
        """Let `test_program` cast, too, with `use_fp16_test`; parameters stay as they are.

        Raises:
            AssertionError: `minimize` was not called yet.
        """
        assert self._scaled_loss is not None, "Please call the minimize method first."
        if test_program is not None and use_fp16_test:
            self._cast(test_program)

    def _cast(self, program: Program) -> None:
        program.cast = self._policy if casting.available() else None

    def backward(
        self,
        loss: Tensor,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
        callbacks: object = None,
    ) -> Pairs:
        """Append the gradients of the scaled loss: [(parameter, gradient), …]."""
        self._cast(program_of(loss))
        self._scaled_loss = self._scaler.scale(loss)
        parameters = parameter_list or programs.own_parameters(self._optimizer)
        return programs.append_backward(self._scaled_loss, parameters, no_grad_set)

    def apply_gradients(self, params_grads: Pairs) -> list[Op]:
        """Append the step on these gradients, which are divided by the scale first."""
        optimizer = self._optimizer
        if not optimizer._param_groups:
            optimizer._param_groups = [parameter for parameter, _ in params_grads]
        step = ScaledStepOp(optimizer, params_grads, self._scaler)
        default_main_program().ops.append(step)
        return [step]

    def apply_optimize(self, loss: Tensor, startup_program: Program | None, params_grads: Pairs) -> list[Op]:
        """As `apply_gradients`."""
        return self.apply_gradients(params_grads)

    def minimize(
        self,
        loss: Tensor,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[list[Op], Pairs]:
        """Append the gradients and the step; returns (entries, [(parameter, gradient), …])."""
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(pairs), pairs


def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    level: str = "O1",
    dtype: str = "float16",
    master_weight: bool | None = None,
    master_grad: bool = False,
    init_loss_scaling: float | None = None,
    incr_every_n_steps: int | None = None,
    decr_every_n_nan_or_inf: int | None = None,
    incr_ratio: float = 2.0,
    decr_ratio: float | None = None,
    use_dynamic_loss_scaling: bool | None = None,
    use_amp_guard: bool = False,
    use_promote: bool = False,
    use_pure_fp16: bool | None = None,
    use_fp16_guard: bool | None = None,
    use_bf16: bool | None = None,
) -> OptimizerWithMixedPrecision:
    """An optimizer whose `minimize` makes a program train in mixed precision.

    Args:
        amp_lists: Operators of the user's own lists.
        level: "O1" computes white operators in 16 bits, "O2" all but black ones, "OD" white ones alone, "O0" nothing.
        dtype: "float16" or "bfloat16".
        master_weight, master_grad, use_amp_guard, use_fp16_guard: Accepted: parameters are float32 always.
        init_loss_scaling, incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio,
            use_dynamic_loss_scaling: As of paddle.amp.GradScaler; of float16 alone unless the last is given.
        use_pure_fp16, use_bf16: The older names of level "O2" and of bfloat16; with one of these the defaults of
            scaling are the older ones.

    Raises:
        ValueError: an unknown level or type.
    """
    older = any(option is not None for option in (use_pure_fp16, use_fp16_guard, use_bf16))
    if older:
        level, dtype = "O2" if use_pure_fp16 else "O1", "bfloat16" if use_bf16 else "float16"
    level = level.upper()
    if level not in ("O0", "OD", "O1", "O2"):
        raise ValueError(f"level should be O0, OD, O1 or O2, received {level!r}.")
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(f"If enable AMP, dtype should be 'float16' or 'bfloat16', received {dtype!r}.")
    dynamic = (older or dtype == "float16") if use_dynamic_loss_scaling is None else use_dynamic_loss_scaling
    scale = init_loss_scaling or (2.0**15 if older else 2.0**16)
    if dtype == "bfloat16" and dynamic:
        dynamic, scale = False, 1.0
        warnings.warn(
            "Dynamic loss scaling for bfloat16 amp training is disabled, and the init_loss_scaling is changed to 1.0 "
            "automatically by PaddlePaddle.",
            stacklevel=2,
        )
    scaler = GradScaler(
        dynamic or scale != 1.0,
        scale,
        incr_ratio,
        decr_ratio or (0.8 if older else 0.5),
        incr_every_n_steps or (1000 if older else 2000),
        decr_every_n_nan_or_inf or (2 if older else 1),
        dynamic,
    )
    return OptimizerWithMixedPrecision(optimizer, amp_lists, level, dtype, scaler, use_promote)
