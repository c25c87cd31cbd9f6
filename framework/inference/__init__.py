"""Inference: engines that run a program on numpy arrays, and the paddle.inference surface over them."""

from framework.core.compilation import compile_options as compile_options
from framework.core.compilation import enable_compilation_cache as enable_compilation_cache
from framework.inference.engine import Engine as Engine
from framework.inference.engine import XLAEngine as XLAEngine
from framework.inference.memory import keep_memory as keep_memory
from framework.inference.memory import share_arena as share_arena
from framework.inference.paddle_api import Config as Config
from framework.inference.paddle_api import DataType as DataType
from framework.inference.paddle_api import PlaceType as PlaceType
from framework.inference.paddle_api import PrecisionType as PrecisionType
from framework.inference.paddle_api import Predictor as Predictor
from framework.inference.paddle_api import PredictorPool as PredictorPool
from framework.inference.paddle_api import Tensor as Tensor
from framework.inference.paddle_api import create_predictor as create_predictor
from framework.inference.paddle_api import get_num_bytes_of_data_type as get_num_bytes_of_data_type
from framework.inference.paddle_api import get_trt_compile_version as get_trt_compile_version
from framework.inference.paddle_api import get_trt_runtime_version as get_trt_runtime_version
from framework.inference.paddle_api import get_version as get_version
from framework.inference.runtime import Runtime as Runtime
from framework.inference.runtime import choose_precision as choose_precision
