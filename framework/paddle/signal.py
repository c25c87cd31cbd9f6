"""`paddle.signal`: transforms of signals over short times."""

from framework.paddle.ops.frames import frame as frame
from framework.paddle.ops.frames import istft, stft
from framework.paddle.ops.frames import overlap_add as overlap_add

__all__ = ["istft", "stft"]
