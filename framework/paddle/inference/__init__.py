"""paddle.inference: predictors of the core; a saved program is an artifact folder (see paddle.jit.save)."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from framework.paddle._kernel.modules import resolver as _resolver

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
