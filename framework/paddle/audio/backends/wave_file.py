"""WAV files: linear PCM, floats, A-law and u-law, with plain and extensible headers and any chunks between them.

The standard library reads PCM alone, and before Python 3.12 no extensible header.

Source: Microsoft and IBM, Multimedia Programming Interface 1.0 (RIFF); ITU-T G.711; EBU Tech 3306 (RF64).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, Literal

import numpy as np

from framework.core.errors import FormatError

Encoding = Literal["PCM_U", "PCM_S", "PCM_F", "ALAW", "ULAW"]

_PCM, _FLOAT, _ALAW, _ULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_WIDTHS = {_PCM: (1, 2, 3, 4), _FLOAT: (4, 8), _ALAW: (1,), _ULAW: (1,)}
_OPEN_SIZES = (0xFFFFFFFF, 0xFFFFFFFE)  # of what was written to a pipe; of RF64, whose size stands elsewhere


@dataclass(frozen=True)
class WaveHeader:
    """How the samples of a WAV file are written.

    Attributes:
        width: Bytes of a sample.
        start: Where the samples begin, in bytes of the stream.
        frames: How many samples a channel has.
    """

    encoding: Encoding
    sample_rate: int
    channels: int
    width: int
    start: int
    frames: int


def read_header(file: IO[bytes], where: str) -> WaveHeader:
    """The header of a stream that can seek; a file that was cut has the frames that are whole.

    Raises:
        FormatError: this is no WAV file, or its samples are compressed.
    """
    head = file.read(12)
    if len(head) < 12 or head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
        raise _error("the file begins with " + (repr(head[:12]) if head else "nothing"), where)
    layout: tuple[int, int, int, int] | None = None
    long_size = 0
    while len(chunk := file.read(8)) == 8:
        name, size = chunk[:4], int.from_bytes(chunk[4:], "little")
        begin = file.tell()
        if name == b"fmt ":
            layout = _read_format(file.read(min(size, 40)), where)
        elif name == b"ds64":
            long_size = int.from_bytes(file.read(16)[8:], "little")
        elif name == b"data":
            if layout is None:
                raise _error("the samples stand before their format", where)
            tag, rate, channels, width = layout
            left = file.seek(0, 2) - begin
            size = min(left, (long_size or left) if size in _OPEN_SIZES else size)
            return WaveHeader(_name(tag, width), rate, channels, width, begin, size // (channels * width))
        file.seek(begin + size + size % 2)
    raise _error("the file ends before its samples", where)


def read_samples(file: IO[bytes], header: WaveHeader, first: int, count: int) -> np.ndarray:
    """Up to `count` samples from the one numbered `first`, [T, channels] float32: the whole numbers of the file, those
    of 16 bits that A-law and u-law stand for, or its floats."""
    first = min(first, header.frames)
    count = min(count, header.frames - first)
    file.seek(header.start + first * header.channels * header.width)
    octets = file.read(count * header.channels * header.width)
    return _decode(octets, header).reshape(-1, header.channels)


def full_scale(header: WaveHeader) -> np.float32:
    """What stands for 1.0 in the numbers of `read_samples`."""
    if header.encoding == "PCM_F":
        return np.float32(1)
    width = 2 if header.encoding in ("ALAW", "ULAW") else header.width
    return np.float32(2 ** (8 * width - 1))


def _read_format(octets: bytes, where: str) -> tuple[int, int, int, int]:
    """The tag of the encoding, rate, channels and bytes of a sample. Raises: FormatError."""
    if len(octets) < 16:
        raise _error(f"a format of {len(octets)} bytes", where)
    tag, channels, rate, _, frame, bits = struct.unpack("<HHIIHH", octets[:16])
    if tag == _EXTENSIBLE and len(octets) >= 26:
        tag = int.from_bytes(octets[24:26], "little")
    width = frame // max(channels, 1)
    if tag not in _WIDTHS:
        raise _error(f"the encoding {tag:#x}", where)
    if not channels or not rate or width * channels != frame or width not in _WIDTHS[tag]:
        raise _error(f"{channels} channels in {frame} bytes, {bits} bits at {rate} Hz", where)
    return tag, rate, channels, width


def _name(tag: int, width: int) -> Encoding:
    if tag == _PCM:
        return "PCM_U" if width == 1 else "PCM_S"
    return "PCM_F" if tag == _FLOAT else "ALAW" if tag == _ALAW else "ULAW"


def _decode(octets: bytes, header: WaveHeader) -> np.ndarray:
    if header.encoding == "PCM_F":
        return np.frombuffer(octets, f"<f{header.width}").astype(np.float32)
    if header.encoding == "PCM_S" and header.width != 3:
        return np.frombuffer(octets, f"<i{header.width}").astype(np.float32)
    numbers = np.frombuffer(octets, np.uint8).astype(np.int32)
    if header.encoding == "PCM_U":  # 8 bits are written without a sign
        numbers = numbers - 128
    elif header.encoding == "ALAW":
        numbers = _expand_alaw(numbers)
    elif header.encoding == "ULAW":
        numbers = _expand_ulaw(numbers)
    else:
        triples = numbers.reshape(-1, 3)
        numbers = triples[:, 0] + 256 * triples[:, 1] + 65536 * (triples[:, 2] - 256 * (triples[:, 2] > 127))
    return numbers.astype(np.float32)


def _expand_ulaw(codes: np.ndarray) -> np.ndarray:
    """16-bit numbers of u-law's bytes, which are written inverted: sign, exponent of 3 bits, mantissa of 4."""
    codes = 255 - codes
    size = ((((codes & 15) << 3) + 132) << ((codes >> 4) & 7)) - 132
    return np.where(codes & 128, -size, size)


def _expand_alaw(codes: np.ndarray) -> np.ndarray:
    """16-bit numbers of A-law's bytes, whose even bits are inverted; the sign bit is set in positive ones."""
    codes = codes ^ 0x55
    exponent, mantissa = (codes >> 4) & 7, (codes & 15) << 4
    size = np.where(exponent > 0, (mantissa + 264) << np.maximum(exponent - 1, 0), mantissa + 8)
    return np.where(codes & 128, size, -size)


def _error(received: str, where: str) -> FormatError:
    return FormatError(
        "this is no whole WAV file of samples",
        where=where,
        received=received,
        allowed="WAV of whole numbers of 8 to 32 bits, floats, A-law or u-law; more by soundfile",
        fix='pip install "oar-toolkit[audio]", then paddle.audio.backends.set_backend("soundfile")',
    )
