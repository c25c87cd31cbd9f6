"""Pure, stateless operations with Paddle's names and numerics on NHWC arrays."""

from framework.nn.functional.conv import conv1d as conv1d
from framework.nn.functional.conv import conv2d as conv2d
from framework.nn.functional.conv import conv2d_transpose as conv2d_transpose
from framework.nn.functional.conv import linear as linear
from framework.nn.functional.conv import matmul as matmul
from framework.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from framework.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from framework.nn.functional.pooling import avg_pool2d as avg_pool2d
from framework.nn.functional.pooling import global_avg_pool2d as global_avg_pool2d
from framework.nn.functional.pooling import max_pool2d as max_pool2d
