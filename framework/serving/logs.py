"""Logs of a server: a line of JSON for each request and each event, or lines for people."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, TextIO

_LOGGERS = ("oar", "uvicorn", "uvicorn.error")
_ACCESS = "uvicorn.access"  # has no lines: requests have those of "oar"
_FACTS = ("logThreads", "logProcesses", "logMultiprocessing")  # which no line says, so none is asked for
_COLLECT = 0.05  # seconds
_TURNS = 10
_encode = json.JSONEncoder(ensure_ascii=True, default=str).encode


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
        return _encode(line)


class TextFormatter(logging.Formatter):
    """A line for people; control characters of what clients sent are shown as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with its traceback where there is one."""
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        message = f"{time} {record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        safe = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in message)
        return f"{safe}\n{self.formatException(record.exc_info)}" if record.exc_info else safe


class LineWriter(logging.Handler):
    """Writes lines a twentieth of a second later, all that have come by then at once, on a thread: to write each where
    it is made would let another thread take Python over in the midst of every request. Errors are written at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: deque[str] = deque()
        self._writing = threading.RLock()
        self._running = False
        atexit.register(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        try:
            self._lines.append(self.format(record))
        except Exception:
            self.handleError(record)
            return
        if record.levelno >= logging.ERROR:
            self.flush()
        elif not self._running:
            with self._writing:
                if not self._running:
                    self._running = True
                    threading.Thread(target=self._work, name="oar-log", daemon=True).start()

    def flush(self) -> None:
        """Write what has come."""
        self._write()

    def close(self) -> None:
        """Write what has come; the end of the process writes no more."""
        self._write()
        atexit.unregister(self.flush)
        super().close()

    def _write(self) -> bool:
        """Write what has come; whether there was something."""
        with self._writing:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                try:
                    self._stream.write("\n".join((*lines, "")))
                    self._stream.flush()
                except (OSError, ValueError):  # nobody reads it any more
                    pass
            return bool(lines)

    def _work(self) -> None:
        """Write until nothing has come for some turns; the next line starts another thread."""
        idle = 0
        while True:
            time.sleep(_COLLECT)
            with self._writing:
                idle = 0 if self._write() else idle + 1
                if idle == _TURNS:
                    self._running = False
                    return


def set_up_logs(log_format: Literal["json", "text"]) -> None:
    """Let all that a server says go to standard error in one format, until the process ends; `server_logs` gives the
    loggers back before."""
    for name in _FACTS:
        setattr(logging, name, False)
    handler = LineWriter(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler] if name != "uvicorn.error" else []
        logger.setLevel(logging.INFO)
        logger.propagate = name == "uvicorn.error"
    logging.getLogger(_ACCESS).handlers[:] = []
    logging.getLogger(_ACCESS).propagate = False


@contextlib.contextmanager
def server_logs(log_format: Literal["json", "text"]) -> Iterator[None]:
    """As `set_up_logs`, for as long as a server runs in a process that goes on: loggers are what they were then."""
    loggers = [logging.getLogger(name) for name in (*_LOGGERS, _ACCESS)]
    states = [(one, one.handlers[:], one.level, one.propagate) for one in loggers]
    facts = {name: getattr(logging, name) for name in _FACTS}
    set_up_logs(log_format)
    writers = logging.getLogger(_LOGGERS[0]).handlers[:]
    try:
        yield
    finally:
        for logger, handlers, level, propagate in states:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
        for name, value in facts.items():
            setattr(logging, name, value)
        for writer in writers:
            writer.close()
