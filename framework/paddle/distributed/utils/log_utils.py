"""Logs that do not pass on what they show."""

from __future__ import annotations

import logging

from framework.paddle._kernel.modules import complete as _complete

_FORMAT = "[%(asctime)-15s] [%(levelname)8s] %(filename)s:%(lineno)s - %(message)s"


def get_logger(log_level: int | str, name: str = "root") -> logging.Logger:
    """The log of this name at this level, which writes to stderr."""
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(log_level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
    return logger


_complete(__name__)
