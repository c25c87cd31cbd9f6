"""`paddle.audio.backends`: sound files. WAV is read here; FLAC, OGG and the rest by the package soundfile."""

from __future__ import annotations

import importlib
import importlib.util
import os
import wave
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from framework.core.errors import ConfigError, FormatError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import to_tensor

if TYPE_CHECKING:
    Source = str | os.PathLike[str] | IO[bytes]

__all__ = ["get_current_backend", "list_available_backends", "set_backend"]

_WAVE, _SOUNDFILE = "wave_backend", "soundfile"
_backend = _WAVE


@dataclass
class AudioInfo:
    """What a sound file says of itself: samples are counted a channel."""

    sample_rate: int
    num_samples: int
    num_channels: int
    bits_per_sample: int
    encoding: str


def list_available_backends() -> list[str]:
    """ "soundfile", where it is installed, and "wave_backend"."""
    return [*([_SOUNDFILE] if importlib.util.find_spec("soundfile") else []), _WAVE]


def get_current_backend() -> str:
    """The backend that `load`, `save` and `info` use."""
    return _backend


def set_backend(backend_name: str) -> None:
    """Choose a backend of `list_available_backends`. Raises: ConfigError: it is none of them."""
    global _backend
    if backend_name not in list_available_backends():
        raise ConfigError(
            "no such backend is installed",
            where="paddle.audio.backends.set_backend",
            received=repr(backend_name),
            allowed=", ".join(list_available_backends()),
            fix='pip install "oar-toolkit[audio]"' if backend_name == _SOUNDFILE else None,
        )
    _backend = backend_name


def info(filepath: Source) -> AudioInfo:
    """Rate, length, channels and width of samples of a sound file.

    Raises: FormatError: it is none that the backend reads.
    """
    if _backend == _SOUNDFILE:
        header = importlib.import_module("soundfile").info(filepath)
        encoding, _, bits = str(header.subtype).partition("_")
        width = int(bits) if bits.isdigit() else 0
        return AudioInfo(header.samplerate, header.frames, header.channels, width, encoding)
    with _open_wave(filepath) as file:
        bits = 8 * file.getsampwidth()
        return AudioInfo(
            file.getframerate(),
            file.getnframes(),
            file.getnchannels(),
            bits,
            "PCM_U" if bits == 8 else "PCM_S",
        )


def load(
    filepath: Source,
    frame_offset: int = 0,
    num_frames: int = -1,
    normalize: bool = True,
    channels_first: bool = True,
) -> tuple[Tensor, int]:
    """The samples of a sound file, float32 [channels, time], and its rate.

    Args:
        frame_offset, num_frames: The first sample, and how many; -1 is all that follow.
        normalize: From -1 to 1; else the numbers of the file, as float32.
        channels_first: Else [time, channels].

    Raises: FormatError: it is no file that the backend reads.
    """
    if _backend == _SOUNDFILE:
        samples, rate = importlib.import_module("soundfile").read(
            filepath, num_frames, frame_offset, dtype="float32" if normalize else "int16", always_2d=True
        )
        samples = samples.astype(np.float32)
    else:
        with _open_wave(filepath) as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            file.setpos(min(frame_offset, file.getnframes()))
            data = file.readframes(file.getnframes() if num_frames < 0 else num_frames)
        whole = len(data) - len(data) % (width * channels)  # a file that was cut may end within a sample
        samples = _numbers(data[:whole], width).reshape(-1, channels)
        if normalize:
            samples = samples / np.float32(2 ** (8 * width - 1))
    return to_tensor(np.ascontiguousarray(samples.T if channels_first else samples)), rate


def save(
    filepath: str | os.PathLike[str],
    src: Tensor,
    sample_rate: int,
    channels_first: bool = True,
    encoding: str | None = None,
    bits_per_sample: int | None = 16,
) -> None:
    """Write samples [channels, time] as WAV of 16 bits: floats from -1 to 1, which are cut there, or int16.

    Raises: ValueError: another width, or samples of another shape.
    """
    if bits_per_sample not in (None, 16):
        raise ValueError(f"save: Invalid bits_per_sample {bits_per_sample}, only support 16 bit")
    if src.ndim != 2:
        raise ValueError(f"save: Expected 2D tensor, received shape {src.shape}")
    samples = src.numpy().T if channels_first else src.numpy()
    if samples.dtype.kind == "f":
        samples = np.clip(samples * 2.0**15, -(2**15), 2**15 - 1)
    with wave.open(os.fspath(filepath), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(np.ascontiguousarray(samples.astype("<i2")).tobytes())


def _open_wave(source: Source) -> wave.Wave_read:
    readable = source if hasattr(source, "read") else os.fspath(source)  # type: ignore[arg-type]
    try:
        return wave.open(readable, "rb")  # type: ignore[arg-type]
    except (wave.Error, EOFError) as error:
        raise FormatError(
            "this is no whole WAV file of PCM samples",
            where=str(source),
            received=str(error) or "the file ends in its header",
            allowed="WAV of 8, 16, 24 or 32 bits; more by soundfile",
            fix='pip install "oar-toolkit[audio]", then paddle.audio.backends.set_backend("soundfile")',
        ) from error


def _numbers(data: bytes, width: int) -> np.ndarray:
    """PCM of `width` bytes a sample as float32; 8 bits are written without a sign."""
    if width == 1:
        return np.frombuffer(data, np.uint8).astype(np.float32) - 128
    if width == 3:
        octets = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
        high = octets[:, 2] - 256 * (octets[:, 2] > 127)
        return (octets[:, 0] + 256 * octets[:, 1] + 65536 * high).astype(np.float32)
    return np.frombuffer(data, f"<i{width}").astype(np.float32)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
