"""ParamAttr: what a layer is told about a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from framework.paddle._kernel.errors import OperandError

if TYPE_CHECKING:
    from framework.paddle.nn.initializer import Initializer
    from framework.paddle.regularizer import WeightDecayRegularizer

AttrLike: TypeAlias = "ParamAttr | Initializer | WeightDecayRegularizer | str | bool | None"
"""What `weight_attr` and `bias_attr` take; see `ParamAttr._to_attr`."""


class ParamAttr:
    """Name, first values, learning rate factor, regularizer and switches of a parameter.

    Args:
        learning_rate: multiplies the optimizer's rate.
        regularizer: replaces the optimizer's weight decay for this parameter.
        trainable: False: no gradient, and optimizers leave it alone.
        need_clip: False: gradient clipping passes it by.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, object]:
        attributes = dict(vars(self), optimize_attr={"learning_rate": self.learning_rate})
        if not with_initializer:
            del attributes["initializer"]
        return attributes

    @staticmethod
    def _to_attr(arg: AttrLike) -> ParamAttr | bool:
        """What `weight_attr` and `bias_attr` take: a ParamAttr, an initializer, a name, a regularizer, None; False is
        no parameter at all."""
        from framework.paddle.nn.initializer import Initializer

        if arg is None or arg is True:
            return ParamAttr()
        if isinstance(arg, ParamAttr) or arg is False:
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if type(arg).__name__ in ("L1Decay", "L2Decay"):
            return ParamAttr(regularizer=arg)
        raise OperandError(
            "this says nothing about a parameter",
            where="weight_attr or bias_attr",
            received=repr(arg)[:80],
            allowed="paddle.ParamAttr, an initializer, a name, a regularizer, None, or False for no parameter",
        )
