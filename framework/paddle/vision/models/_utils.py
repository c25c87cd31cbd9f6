"""paddle.vision.models._utils: what a model computes on the way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from framework import paddle
from framework.paddle import nn
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor


class IntermediateLayerGetter(nn.LayerDict):
    """The layers of a model up to the last one asked for, whose results it returns by other names.

    The layers must be registered in the order in which the model calls them, each once.

    Args:
        model: Its own sublayers are called, not those within them.
        return_layers: {the name of a sublayer: the name of its result}.

    Raises:
        ValueError: the model has no such sublayer.
    """

    def __init__(self, model: nn.Layer, return_layers: Mapping[str, str]) -> None:
        children = dict(model.named_children())
        if absent := [name for name in return_layers if name not in children]:
            raise ValueError(f"return_layers are not present in model: {', '.join(absent)}")
        names = list(children)
        last = max((names.index(name) for name in return_layers), default=len(names) - 1)
        super().__init__(OrderedDict((name, children[name]) for name in names[: last + 1]))
        self.return_layers = dict(return_layers)

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        """{name: result}. Images are flattened before the first linear layer."""
        results: OrderedDict[str, Tensor] = OrderedDict()
        for name, layer in self.items():
            assert layer is not None
            first = next(iter(layer.sublayers()), layer)
            if x.ndim == 4 and (isinstance(layer, nn.Linear) or isinstance(first, nn.Linear)):
                x = paddle.flatten(x, 1)
            x = layer(x)
            if name in self.return_layers:
                results[self.return_layers[name]] = x
        return results


_complete(__name__)
