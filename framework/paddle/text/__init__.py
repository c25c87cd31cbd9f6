"""paddle.text: Viterbi decoding and data sets of texts."""

from __future__ import annotations

from framework.paddle.text.viterbi import ViterbiDecoder as ViterbiDecoder
from framework.paddle.text.viterbi import viterbi_decode as viterbi_decode
