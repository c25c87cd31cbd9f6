"""paddle.base.layer_helper: what makes a layer's parameters in Paddle's older style."""

from framework.paddle.nn.layer.parameters import LayerHelper as LayerHelper
