"""paddle.base.log_helper: loggers that write on their own."""

from __future__ import annotations

import logging


def get_logger(name: str, level: int, fmt: str | None = None) -> logging.Logger:
    """A logger with a handler of its own, which passes nothing on.

    Args:
        name: Its name.
        level: The least level that it writes.
        fmt: The form of its lines; None: the message.
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    handler = logging.StreamHandler()
    if fmt:
        handler.setFormatter(logging.Formatter(fmt=fmt, datefmt="%a %b %d %H:%M:%S"))
    logger.addHandler(handler)
    logger.propagate = False
    return logger
