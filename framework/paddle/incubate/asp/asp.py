"""paddle.incubate.asp.asp: training with weights of which n of m are zero (automatic sparsity)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import numpy as np

from framework import paddle
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.incubate.asp.supported_layer_list import (
    Pruning,
    _default_pruning,
    supported_layers_and_prune_func_map,
)
from framework.paddle.incubate.asp.utils import MaskAlgo
from framework.paddle.nn.layer import Layer
from framework.paddle.optimizer.base import Optimizer
from framework.paddle.static.program import (
    Program,
    default_main_program,
    default_startup_program,
    in_dynamic_mode,
    program_guard,
)
from framework.paddle.static.state import recent_programs

_ALGORITHMS = {
    "mask_1d": MaskAlgo.MASK_1D,
    "mask_2d_greedy": MaskAlgo.MASK_2D_GREEDY,
    "mask_2d_best": MaskAlgo.MASK_2D_BEST,
}


class ProgramASPInfo:
    """What is sparse in a program: masks by the names of parameters, and layers that stay as they are."""

    def __init__(self) -> None:
        self.mask_vars: dict[str, Parameter] = {}
        self.masks: dict[str, np.ndarray] = {}
        self.excluded_layers: list[str] = []

    def update_mask_vars(self, param_name: str, var: Parameter) -> None:
        """Set the mask of a parameter, a Tensor."""
        self.mask_vars[param_name] = var

    def update_masks(self, param_name: str, var: np.ndarray) -> None:
        """Set the mask of a parameter, an array."""
        self.masks[param_name] = var

    def update_excluded_layers(self, param_names: Iterable[str]) -> None:
        """Add beginnings of names that stay as they are."""
        self.excluded_layers = [*self.excluded_layers, *param_names]

    def reset_excluded_layers(self) -> None:
        """Let nothing be excluded."""
        self.excluded_layers = []


class ASPHelper:
    """What the functions of `paddle.incubate.asp` do; in dynamic mode the default program stands for all layers."""

    MASK_APPENDDED_NAME = "asp_mask"
    PADDLE_WEIGHT_SUFFIX = "w_"
    _infos: ClassVar[WeakKeyDictionary[Program, ProgramASPInfo]] = WeakKeyDictionary()

    @classmethod
    def set_excluded_layers(cls, param_names: Iterable[str], main_program: Program) -> None:
        """See `asp.set_excluded_layers`."""
        cls._get_program_asp_info(main_program).update_excluded_layers(param_names)

    @classmethod
    def reset_excluded_layers(cls, main_program: Program | None = None) -> None:
        """See `asp.reset_excluded_layers`."""
        programs = list(cls._infos) if main_program is None else [main_program]
        for program in programs:
            cls._get_program_asp_info(program).reset_excluded_layers()

    @staticmethod
    def decorate(optimizer: Optimizer) -> OptimizerWithSparsityGuarantee:
        """See `asp.decorate`."""
        if in_dynamic_mode():
            ASPHelper._create_mask_variables(
                default_main_program(), default_startup_program(), optimizer._all_parameters()
            )
        return OptimizerWithSparsityGuarantee(optimizer)

    @classmethod
    def prune_parameters(
        cls,
        program: Program,
        parameters: Iterable[Parameter],
        n: int,
        m: int,
        mask_algo: MaskAlgo,
        with_mask: bool,
    ) -> dict[str, np.ndarray]:
        """Prune what is supported among these parameters; returns all masks of the program.

        Raises:
            AssertionError: masks are to be set, and no optimizer was decorated.
        """
        info = cls._get_program_asp_info(program)
        for parameter in parameters:
            if not cls._is_supported_layer(program, parameter.name):
                continue
            weight = parameter.numpy()
            prune = cls._get_prune_func_by_name(parameter.name)
            pruned, mask = prune(weight, m, n, mask_algo, parameter.name)
            parameter.set_value(pruned.astype(weight.dtype))
            if with_mask:
                variable = info.mask_vars.get(parameter.name)
                assert variable is not None, (
                    f"Cannot find {cls._get_mask_name(parameter.name)} variable, please call asp.decorate() to "
                    "decorate your optimizer first, in static mode its minimize(), too!"
                )
                variable.set_value(mask.astype(weight.dtype))
            info.update_masks(parameter.name, mask)
        return dict(info.masks)

    @staticmethod
    def _get_mask_name(param_name: str) -> str:
        return f"{param_name}.{ASPHelper.MASK_APPENDDED_NAME}"

    @staticmethod
    def _get_not_ASP_relevant_vars(main_program: Program) -> list[Parameter]:
        mask = ASPHelper.MASK_APPENDDED_NAME
        return [p for p in main_program.all_parameters() if mask not in p.name.split(".")]

    @classmethod
    def _get_program_asp_info(cls, main_program: Program) -> ProgramASPInfo:
        return cls._infos.setdefault(main_program, ProgramASPInfo())

    @classmethod
    def _is_supported_layer(cls, main_program: Program, param_name: str) -> bool:
        """Whether a parameter is pruned, by its name: "linear_0.w_0"."""
        owner, *suffixes = param_name.split(".")
        if cls.MASK_APPENDDED_NAME in suffixes:
            return False
        if any(layer in param_name for layer in cls._get_program_asp_info(main_program).excluded_layers):
            return False
        if param_name in supported_layers_and_prune_func_map:
            return True
        if not suffixes or cls.PADDLE_WEIGHT_SUFFIX not in suffixes[0]:
            return False
        return not {owner, owner[: owner.rfind("_")]}.isdisjoint(supported_layers_and_prune_func_map)

    @classmethod
    def _get_prune_func_by_name(cls, param_name: str) -> Pruning:
        owner = param_name.split(".")[0]
        names = (param_name, owner, owner[: owner.rfind("_")])
        functions = (supported_layers_and_prune_func_map.get(name) for name in names)
        return next(filter(None, functions), _default_pruning)

    @classmethod
    def _minimize(
        cls,
        optimizer: Optimizer,
        loss: Tensor,
        main_program: Program | None = None,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[Sequence[object], Sequence[tuple[Parameter, Tensor]]]:
        """`minimize`, masks for what it trains, and their products at the end of the program."""
        program = main_program or default_main_program()
        operations, pairs = optimizer.minimize(loss, startup_program, parameter_list, no_grad_set=no_grad_set)
        parameters = [parameter for parameter, _ in pairs]
        cls._create_mask_variables(program, startup_program, parameters)
        with program_guard(program, startup_program), paddle.no_grad():
            cls._mask(program, parameters)
        return operations, pairs

    @classmethod
    def _step(cls, optimizer: Optimizer) -> None:
        """`step`, and the masks on what it moved."""
        optimizer.step()
        with paddle.no_grad():
            cls._mask(default_main_program(), optimizer._all_parameters())

    @classmethod
    def _create_mask_variables(
        cls, main_program: Program, startup_program: Program | None, params: Iterable[Parameter]
    ) -> None:
        info = cls._get_program_asp_info(main_program)
        with program_guard(main_program, startup_program):
            for parameter in params:
                absent = parameter.name not in info.mask_vars
                if absent and cls._is_supported_layer(main_program, parameter.name):
                    mask = paddle.static.create_parameter(
                        parameter.shape,
                        parameter.dtype,
                        cls._get_mask_name(parameter.name),
                        default_initializer=paddle.nn.initializer.Constant(1.0),
                    )
                    assert mask is not None
                    mask.stop_gradient, mask.trainable = True, False
                    info.update_mask_vars(parameter.name, mask)

    @classmethod
    def _mask(cls, program: Program, params: Iterable[Parameter]) -> None:
        masks = cls._get_program_asp_info(program).mask_vars
        for parameter in params:
            if parameter.name in masks:
                parameter._value = paddle.multiply(parameter, masks[parameter.name])._value


class OptimizerWithSparsityGuarantee:
    """An optimizer after whose steps what was pruned is zero again."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def __getattr__(self, item: str) -> Any:
        return getattr(self._optimizer, item)

    def minimize(
        self,
        loss: Tensor,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter] | None = None,
        no_grad_set: Iterable[Tensor | str] | None = None,
    ) -> tuple[Sequence[object], Sequence[tuple[Parameter, Tensor]]]:
        """As that of the optimizer."""
        return ASPHelper._minimize(
            self._optimizer, loss, None, startup_program, parameter_list, no_grad_set=no_grad_set
        )

    def step(self) -> None:
        """As that of the optimizer; then the masks hold."""
        ASPHelper._step(self._optimizer)

    def state_dict(self) -> dict[str, object]:
        """That of the optimizer, and the masks."""
        masks = ASPHelper._get_program_asp_info(default_main_program()).mask_vars
        named = {ASPHelper._get_mask_name(name): mask for name, mask in masks.items()}
        return {**self._optimizer.state_dict(), **named}

    def set_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Take the masks and the state of the optimizer. Raises AssertionError: a mask is not there."""
        info = ASPHelper._get_program_asp_info(default_main_program())
        for name, mask in info.mask_vars.items():
            key = ASPHelper._get_mask_name(name)
            assert key in state_dict, f"The {key} is not found."
            mask.set_value(cast("TensorLike", state_dict[key]))
            info.update_masks(name, mask.numpy())
        self._optimizer.set_state_dict(state_dict)


def set_excluded_layers(param_names: Iterable[str], main_program: Program | None = None) -> None:
    """Leave layers as they are: those in whose parameters' names one of these texts stands ("linear_0")."""
    ASPHelper.set_excluded_layers(param_names, main_program or default_main_program())


def reset_excluded_layers(main_program: Program | None = None) -> None:
    """Let no layer of a program, by default of any, be excluded."""
    ASPHelper.reset_excluded_layers(main_program)


def decorate(optimizer: Optimizer) -> OptimizerWithSparsityGuarantee:
    """An optimizer that keeps the masks which `prune_model` makes."""
    return ASPHelper.decorate(optimizer)


def _program_of(layer: Layer) -> Program:
    """The program that has the parameters of a layer, else the one that is recorded into."""
    identities = {id(parameter) for parameter in layer.parameters()}
    programs = () if in_dynamic_mode() else recent_programs()
    holders = (
        program for program in programs if not identities.isdisjoint(map(id, program.all_parameters()))
    )
    return next(holders, default_main_program())


def prune_model(
    model: Layer | Program, n: int = 2, m: int = 4, mask_algo: str = "mask_1d", with_mask: bool = True
) -> dict[str, np.ndarray]:
    """Set n of m weights of the supported layers (linear, conv2d) to zero.

    Args:
        model: A layer, or the program of a model.
        n, m: Of m neighbours n become zero.
        mask_algo: mask_1d, mask_2d_greedy or mask_2d_best.
        with_mask: Keep the masks for the decorated optimizer; False for inference.

    Returns:
        The masks by the names of the parameters.

    Raises:
        TypeError: `model` is neither.
        AssertionError: there is no such algorithm, or no optimizer was decorated.
    """
    assert mask_algo in _ALGORITHMS, f'The "mask_algo" should be one of {list(_ALGORITHMS)}'
    if not isinstance(model, Layer | Program):
        raise TypeError(f"model should be paddle.nn.Layer or paddle.static.Program, but got {type(model)}")
    program = model if isinstance(model, Program) else _program_of(model)
    parameters = model.parameters() if isinstance(model, Layer) else model.all_parameters()
    return ASPHelper.prune_parameters(program, parameters, n, m, _ALGORITHMS[mask_algo], with_mask)
