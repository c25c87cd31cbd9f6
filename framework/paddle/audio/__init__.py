"""`paddle.audio`: spectrograms and what is made of them, sound files, and two data sets of sounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.audio import backends, datasets, features, functional
from framework.paddle.audio.backends import info, load, save

__all__ = ["backends", "datasets", "features", "functional", "info", "load", "save"]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
