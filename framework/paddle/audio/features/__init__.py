"""`paddle.audio.features`: layers that make spectrograms of waveforms [N, T]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.audio.functional import (
    Window,
    compute_fbank_matrix,
    create_dct,
    get_window,
    power_to_db,
)
from framework.paddle.nn.layer import Layer
from framework.paddle.ops.arithmetic import matmul
from framework.paddle.ops.frames import stft

__all__ = ["MFCC", "LogMelSpectrogram", "MelSpectrogram", "Spectrogram"]


class Spectrogram(Layer):
    """Magnitudes of the short-time Fourier transform, to a power.

    Args:
        n_fft: Samples of one transform; hop_length: between two, a quarter of the window by default of the others.
        win_length, window: Of the window, see `paddle.audio.functional.get_window`; None is `n_fft`.
        power: 1 magnitudes, 2 powers.
        center, pad_mode: Whether frame t is centred at t * hop_length, and how the ends are padded for it.
    """

    fft_window: Tensor

    def __init__(
        self,
        n_fft: int = 512,
        hop_length: int | None = 512,
        win_length: int | None = None,
        window: Window = "hann",
        power: float = 1.0,
        center: bool = True,
        pad_mode: str = "reflect",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if power <= 0:
            raise ValueError(f"Spectrogram: power must be positive, received {power}")
        win_length = n_fft if win_length is None else win_length
        self.power = power
        self._settings = (n_fft, hop_length, win_length)
        self._ends = {"center": center, "pad_mode": pad_mode}
        self.register_buffer("fft_window", get_window(window, win_length, True, dtype))

    def forward(self, x: Tensor) -> Tensor:
        """[N, T] -> [N, n_fft // 2 + 1, frames]"""
        return stft(x, *self._settings, window=self.fft_window, **self._ends).abs() ** self.power


class MelSpectrogram(Layer):
    """A spectrogram in bands of the mel scale. Arguments: those of `Spectrogram`, and of
    `paddle.audio.functional.compute_fbank_matrix`; `f_max` None is half the rate."""

    fbank_matrix: Tensor

    def __init__(
        self,
        sr: int = 22050,
        n_fft: int = 2048,
        hop_length: int | None = 512,
        win_length: int | None = None,
        window: Window = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float = "slaney",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._spectrogram = Spectrogram(n_fft, hop_length, win_length, window, power, center, pad_mode, dtype)
        self.n_mels, self.f_min, self.f_max, self.htk, self.norm = n_mels, f_min, f_max, htk, norm
        top = sr // 2 if f_max is None else f_max
        matrix = compute_fbank_matrix(sr, n_fft, n_mels, f_min, top, htk, norm, dtype)
        self.register_buffer("fbank_matrix", matrix)

    def forward(self, x: Tensor) -> Tensor:
        """[N, T] -> [N, n_mels, frames]"""
        return matmul(self.fbank_matrix, self._spectrogram(x))


class LogMelSpectrogram(Layer):
    """A mel spectrogram in dB. Arguments: those of `MelSpectrogram` and `paddle.audio.functional.power_to_db`."""

    def __init__(
        self,
        sr: int = 22050,
        n_fft: int = 512,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Window = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float = "slaney",
        ref_value: float = 1.0,
        amin: float = 1e-10,
        top_db: float | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        shape = (sr, n_fft, hop_length, win_length, window, power, center, pad_mode)
        self._melspectrogram = MelSpectrogram(*shape, n_mels, f_min, f_max, htk, norm, dtype)
        self.ref_value, self.amin, self.top_db = ref_value, amin, top_db

    def forward(self, x: Tensor) -> Tensor:
        """[N, T] -> [N, n_mels, frames] in dB"""
        return power_to_db(self._melspectrogram(x), self.ref_value, self.amin, self.top_db)


class MFCC(Layer):
    """Mel frequency cepstral coefficients. Arguments: those of `LogMelSpectrogram`, and `n_mfcc` coefficients.

    Raises: ValueError: more coefficients than bands.
    """

    dct_matrix: Tensor

    def __init__(
        self,
        sr: int = 22050,
        n_mfcc: int = 40,
        n_fft: int = 512,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Window = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float = "slaney",
        ref_value: float = 1.0,
        amin: float = 1e-10,
        top_db: float | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if n_mfcc > n_mels:
            raise ValueError(f"MFCC: n_mfcc cannot be larger than n_mels: {n_mfcc} vs {n_mels}")
        shape = (sr, n_fft, hop_length, win_length, window, power, center, pad_mode)
        bands = (n_mels, f_min, f_max, htk, norm)
        self._log_melspectrogram = LogMelSpectrogram(*shape, *bands, ref_value, amin, top_db, dtype)
        self.register_buffer("dct_matrix", create_dct(n_mfcc, n_mels, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """[N, T] -> [N, n_mfcc, frames]"""
        return matmul(self.dct_matrix, self._log_melspectrogram(x), transpose_x=True)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
