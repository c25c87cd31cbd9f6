"""paddle.text: Viterbi decoding and data sets of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.text import datasets as datasets
from framework.paddle.text.datasets import WMT14 as WMT14
from framework.paddle.text.datasets import WMT16 as WMT16
from framework.paddle.text.datasets import Conll05st as Conll05st
from framework.paddle.text.datasets import Imdb as Imdb
from framework.paddle.text.datasets import Imikolov as Imikolov
from framework.paddle.text.datasets import Movielens as Movielens
from framework.paddle.text.datasets import UCIHousing as UCIHousing
from framework.paddle.text.viterbi import ViterbiDecoder as ViterbiDecoder
from framework.paddle.text.viterbi import viterbi_decode as viterbi_decode

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
