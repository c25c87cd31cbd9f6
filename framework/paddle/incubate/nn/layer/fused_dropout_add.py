"""Dropout and a sum."""

from __future__ import annotations

from framework.paddle.incubate.nn import FusedDropoutAdd as FusedDropoutAdd
