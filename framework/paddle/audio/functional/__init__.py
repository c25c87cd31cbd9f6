"""`paddle.audio.functional`: the mel scale, filter banks, the cosine transform, decibels and windows.

Sources: Slaney, Auditory Toolbox (1998), for the scale that is linear below 1 kHz; Young et al., The HTK Book, for the
other; windows are SciPy's. Constants are computed in float64 and rounded once to `dtype`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import to_tensor
from framework.paddle.ops.unary import exp, log, log10

if TYPE_CHECKING:
    Number = float | Tensor
    Numbers = float | np.float64 | NDArray[np.float64]

__all__ = [
    "compute_fbank_matrix",
    "create_dct",
    "fft_frequencies",
    "get_window",
    "hz_to_mel",
    "mel_frequencies",
    "mel_to_hz",
    "power_to_db",
]

Window: TypeAlias = str | tuple[object, ...]
_HZ_PER_MEL = 200 / 3  # of Slaney's scale below its bend
_BEND_HZ = 1000.0
_BEND_MEL = _BEND_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27  # of Slaney's scale above it
_WINDOWS = (
    *("blackman", "bohman", "cosine", "exponential", "gaussian", "general_cosine", "general_gaussian"),
    *("general_hamming", "hamming", "hann", "kaiser", "nuttall", "taylor", "triang", "tukey"),
)
_WITH_PARAMETERS = ("exponential", "gaussian", "general_cosine", "general_gaussian", "general_hamming")


def hz_to_mel(freq: Number, htk: bool = False) -> Number:
    """Frequencies in Hz as mels: of Slaney's scale, or with `htk` 2595 log10(1 + f / 700)."""
    if isinstance(freq, Tensor):
        if htk:
            return 2595.0 * log10(1.0 + freq / 700.0)
        above = (freq > _BEND_HZ).astype(freq.dtype)
        bent = _BEND_MEL + log(freq.clip(min=_BEND_HZ) / _BEND_HZ) / _LOG_STEP
        return bent * above + freq / _HZ_PER_MEL * (1 - above)
    return float(_to_mel(np.float64(freq), htk))


def mel_to_hz(mel: Number, htk: bool = False) -> Number:
    """The inverse of `hz_to_mel`."""
    if isinstance(mel, Tensor):
        if htk:
            return 700.0 * (exp(mel * (math.log(10) / 2595)) - 1.0)
        above = (mel > _BEND_MEL).astype(mel.dtype)
        bent = _BEND_HZ * exp(_LOG_STEP * (mel.clip(min=_BEND_MEL) - _BEND_MEL))
        return bent * above + mel * _HZ_PER_MEL * (1 - above)
    return float(_to_hz(np.float64(mel), htk))


def _to_mel(freq: Numbers, htk: bool) -> NDArray[np.float64]:
    if htk:
        return np.asarray(2595.0 * np.log10(1.0 + freq / 700.0))
    bent = _BEND_MEL + np.log(np.maximum(freq, _BEND_HZ) / _BEND_HZ) / _LOG_STEP
    return np.where(freq > _BEND_HZ, bent, freq / _HZ_PER_MEL)


def _to_hz(mel: Numbers, htk: bool) -> NDArray[np.float64]:
    if htk:
        return np.asarray(700.0 * (10.0 ** (mel / 2595.0) - 1.0))
    bent = _BEND_HZ * np.exp(_LOG_STEP * (np.maximum(mel, _BEND_MEL) - _BEND_MEL))
    return np.where(mel > _BEND_MEL, bent, mel * _HZ_PER_MEL)


def _mel_points(count: int, low: float, high: float, htk: bool) -> NDArray[np.float64]:
    return _to_hz(np.linspace(_to_mel(low, htk), _to_mel(high, htk), count), htk)


def mel_frequencies(
    n_mels: int = 64, f_min: float = 0.0, f_max: float = 11025.0, htk: bool = False, dtype: str = "float32"
) -> Tensor:
    """[n_mels] frequencies in Hz that are even on the mel scale, from `f_min` to `f_max`."""
    return to_tensor(_mel_points(n_mels, f_min, f_max, htk), dtype=dtype)


def fft_frequencies(sr: int, n_fft: int, dtype: str = "float32") -> Tensor:
    """[n_fft // 2 + 1] frequencies in Hz of a transform of `n_fft` samples at `sr` a second."""
    return to_tensor(np.linspace(0, sr / 2, 1 + n_fft // 2), dtype=dtype)


def compute_fbank_matrix(
    sr: int,
    n_fft: int,
    n_mels: int = 64,
    f_min: float = 0.0,
    f_max: float | None = None,
    htk: bool = False,
    norm: str | float = "slaney",
    dtype: str = "float32",
) -> Tensor:
    """[n_mels, n_fft // 2 + 1]: the weights of the bins of a spectrum in triangles that are even on the mel scale.

    Args:
        norm: "slaney": each triangle has the area 1 over Hz; a number p: each row has the p-norm 1; else as they are.
    """
    bins = np.linspace(0, sr / 2, 1 + n_fft // 2)
    points = _mel_points(n_mels + 2, f_min, sr / 2 if f_max is None else f_max, htk)[:, None]
    rising = (bins - points[:-2]) / (points[1:-1] - points[:-2])
    falling = (points[2:] - bins) / (points[2:] - points[1:-1])
    weights = np.maximum(0, np.minimum(rising, falling))
    if norm == "slaney":
        weights *= 2 / (points[2:] - points[:-2])
    elif isinstance(norm, int | float):
        sizes = np.linalg.norm(weights, norm, axis=-1, keepdims=True)
        weights /= np.maximum(sizes, 1e-12)
    return to_tensor(weights, dtype=dtype)


def power_to_db(
    spect: Tensor, ref_value: float = 1.0, amin: float = 1e-10, top_db: float | None = 80.0
) -> Tensor:
    """10 log10(spect / ref_value) in dB, of values of `amin` at least.

    Args:
        top_db: What is further below the highest value is raised to so far below it; None: nothing is.

    Raises: ValueError: `amin` or `ref_value` is not positive, or `top_db` is negative.
    """
    for name, value in (("amin", amin), ("ref_value", ref_value)):
        if value <= 0:
            raise ValueError(f"power_to_db: {name} must be strictly positive, received {value}")
    if top_db is not None and top_db < 0:
        raise ValueError(f"power_to_db: top_db must be non-negative, received {top_db}")
    decibels = 10.0 * log10(spect.clip(min=amin)) - 10.0 * math.log10(max(ref_value, amin))
    return decibels if top_db is None else decibels.maximum(decibels.max() - top_db)


def create_dct(n_mfcc: int, n_mels: int, norm: str | None = "ortho", dtype: str = "float32") -> Tensor:
    """[n_mels, n_mfcc]: the discrete cosine transform of the second kind as a matrix, orthogonal or doubled."""
    if norm not in (None, "ortho"):
        raise ValueError(f'create_dct: norm is "ortho" or None, received {norm!r}')
    matrix = np.cos(math.pi / n_mels * (np.arange(n_mels)[:, None] + 0.5) * np.arange(n_mfcc))
    if norm is None:
        return to_tensor(2 * matrix, dtype=dtype)
    matrix[:, 0] *= math.sqrt(0.5)
    return to_tensor(matrix * math.sqrt(2 / n_mels), dtype=dtype)


def get_window(window: Window, win_length: int, fftbins: bool = True, dtype: str = "float64") -> Tensor:
    """[win_length] of a window.

    Args:
        window: Its name, or (name, parameters …) such as ("gaussian", 7): those of `scipy.signal.windows`.
        fftbins: Periodic, for transforms; else symmetric, for filters.

    Raises: ValueError: an unknown window, or one without the parameters that it needs.
    """
    if not isinstance(window, str | tuple):
        raise ValueError(f"get_window: {type(window)} as window type is not supported: a name, or a tuple")
    name, *parameters = (window,) if isinstance(window, str) else window
    if name not in _WINDOWS:
        raise ValueError(f"get_window: Unknown window type {name!r}; there are {', '.join(_WINDOWS)}")
    if isinstance(window, str) and name in _WITH_PARAMETERS:
        raise ValueError(f"get_window: {name!r} needs one or more parameters -- pass a tuple")
    return to_tensor(signal.get_window((name, *parameters), win_length, fftbins), dtype=dtype)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
