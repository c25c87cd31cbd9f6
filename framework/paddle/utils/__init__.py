"""paddle.utils: unique names and small helpers."""

from __future__ import annotations

from framework.paddle.utils import unique_name as unique_name
