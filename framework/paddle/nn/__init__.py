"""paddle.nn: layers, channels first."""

from __future__ import annotations

from framework.paddle.nn import initializer as initializer
from framework.paddle.nn.layer import Layer as Layer
from framework.paddle.nn.param_attr import ParamAttr as ParamAttr
