"""How far two engines agree on the same inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.compress.search import relative_error
from framework.export.formats.onnx.check import NamedArrays


def agreement(expected: Sequence[NamedArrays], got: Sequence[NamedArrays]) -> float:
    """1 where two engines give the same: the share of equal whole numbers, and 1 less the relative error of floats;
    of the output that agrees least, the mean over examples."""
    cosines = []
    for one, other in zip(expected, got):
        shares = []
        for name, array in one.items():
            array, answer = np.asarray(array), np.asarray(other[name])
            if array.dtype.kind == "f":
                shares.append(max(0.0, 1.0 - relative_error(array, answer)))
            elif array.size:
                shares.append(float(np.mean(array == answer)))
        cosines.append(min(shares, default=1.0))
    return float(np.mean(cosines))
