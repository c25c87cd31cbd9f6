"""paddle.nn: layers, channels first."""

from __future__ import annotations

from framework.paddle.nn import initializer as initializer
from framework.paddle.nn import utils as utils
from framework.paddle.nn.clip import ClipGradByGlobalNorm as ClipGradByGlobalNorm
from framework.paddle.nn.clip import ClipGradByNorm as ClipGradByNorm
from framework.paddle.nn.clip import ClipGradByValue as ClipGradByValue
from framework.paddle.nn.containers import LayerDict as LayerDict
from framework.paddle.nn.containers import LayerList as LayerList
from framework.paddle.nn.containers import ParameterList as ParameterList
from framework.paddle.nn.containers import Sequential as Sequential
from framework.paddle.nn.initializer import LazyGuard as LazyGuard
from framework.paddle.nn.layer import Layer as Layer
from framework.paddle.nn.layer import create_parameter as create_parameter
from framework.paddle.nn.param_attr import ParamAttr as ParamAttr
from framework.paddle.nn.rnn import GRU as GRU
from framework.paddle.nn.rnn import LSTM as LSTM
from framework.paddle.nn.rnn import RNN as RNN
from framework.paddle.nn.rnn import BiRNN as BiRNN
from framework.paddle.nn.rnn import SimpleRNN as SimpleRNN
from framework.paddle.nn.rnn_cells import GRUCell as GRUCell
from framework.paddle.nn.rnn_cells import LSTMCell as LSTMCell
from framework.paddle.nn.rnn_cells import RNNCellBase as RNNCellBase
from framework.paddle.nn.rnn_cells import SimpleRNNCell as SimpleRNNCell
