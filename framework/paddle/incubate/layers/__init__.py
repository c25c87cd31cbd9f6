"""paddle.incubate.layers: older layers of static programs."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.incubate.layers.nn import batch_fc as batch_fc
from framework.paddle.incubate.layers.nn import fused_bn_add_act as fused_bn_add_act
from framework.paddle.incubate.layers.nn import partial_concat as partial_concat
from framework.paddle.incubate.layers.nn import partial_sum as partial_sum
from framework.paddle.incubate.layers.nn import pow2_decay_with_linear_warmup as pow2_decay_with_linear_warmup
from framework.paddle.incubate.layers.nn import shuffle_batch as shuffle_batch

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
