"""paddle.hapi.logger: the log of paddle.Model."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

_FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


def setup_logger(
    output: str | None = None, name: str = "hapi", log_level: int = logging.INFO
) -> logging.Logger:
    """A logger that writes to standard output in the first process, and to a file.

    Args:
        output: A file, which ends with .txt or .log, or a folder for log.txt; other processes add their number.
    """
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(log_level)
    rank = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    if rank == 0 and not logger.handlers:
        _add(logger, logging.StreamHandler(sys.stdout))
    if output is not None:
        path = Path(output) if output.endswith((".txt", ".log")) else Path(output) / "log.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        _add(logger, logging.FileHandler(f"{path}.rank{rank}" if rank else path, delay=True))
    return logger


def _add(logger: logging.Logger, handler: logging.Handler) -> None:
    handler.setLevel(logger.level)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
