"""Logs of a server: a line of JSON for each request and each event, or lines for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

_LOGGERS = ("oar", "uvicorn", "uvicorn.error")


class JsonFormatter(logging.Formatter):
    """One line of JSON a record: time, level, logger, message, the fields of `extra={"facts": {…}}`, the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


class TextFormatter(logging.Formatter):
    """A line for people; control characters of what clients sent are shown as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with its traceback where there is one."""
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        message = f"{time} {record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        safe = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in message)
        return f"{safe}\n{self.formatException(record.exc_info)}" if record.exc_info else safe


def set_up_logs(log_format: Literal["json", "text"]) -> None:
    """Let all that a server says go to standard error in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler] if name != "uvicorn.error" else []
        logger.setLevel(logging.INFO)
        logger.propagate = name == "uvicorn.error"
    logging.getLogger("uvicorn.access").handlers[:] = []
    logging.getLogger("uvicorn.access").propagate = False
