"""`paddle.audio.backends`: sound files. WAV is read here; FLAC, OGG, MP3 and the rest by the package soundfile."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from framework.core.errors import ConfigError, FormatError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.audio.backends.wave_file import full_scale, read_header, read_samples
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
        with _explain_soundfile(filepath):
            header = importlib.import_module("soundfile").info(filepath)
        encoding, _, bits = str(header.subtype).partition("_")
        width = int(bits) if bits.isdecimal() else 0
        return AudioInfo(header.samplerate, header.frames, header.channels, width, encoding)
    with _open_wave(filepath) as file:
        wave_header = read_header(file, str(filepath))
    width = 8 * wave_header.width
    return AudioInfo(
        wave_header.sample_rate, wave_header.frames, wave_header.channels, width, wave_header.encoding
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
        normalize: From -1 to 1; else the numbers of the file, as float32 (of A-law and u-law those of 16 bits that
            they stand for). Floats are as they are.
        channels_first: Else [time, channels].

    Raises: FormatError: it is no file that the backend reads.
    """
    if _backend == _SOUNDFILE:
        dtype = "float32" if normalize else "int16"
        with _explain_soundfile(filepath):
            samples, rate = importlib.import_module("soundfile").read(
                filepath, num_frames, frame_offset, dtype=dtype, always_2d=True
            )
        samples = samples.astype(np.float32)
    else:
        with _open_wave(filepath) as file:
            wave_header = read_header(file, str(filepath))
            rate = wave_header.sample_rate
            count = wave_header.frames if num_frames < 0 else num_frames
            samples = read_samples(file, wave_header, frame_offset, count)
        if normalize:
            samples = samples / full_scale(wave_header)
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


@contextlib.contextmanager
def _explain_soundfile(source: Source) -> Iterator[None]:
    """Raises: FormatError, where libsndfile does not read the file."""
    try:
        yield
    except RuntimeError as error:  # soundfile's own are such
        raise FormatError(
            "soundfile does not read this",
            where=str(source),
            received=str(error),
            allowed="a whole WAV, FLAC, OGG or MP3 file",
        ) from error


@contextlib.contextmanager
def _open_wave(source: Source) -> Iterator[IO[bytes]]:
    """A stream that can seek; one that was given stays open."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            yield file
    else:
        yield source if source.seekable() else io.BytesIO(source.read())


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
