"""Pages of PDFs are looked at by another process first, which may die of them.

PDFium has no limits: a document of 2 kB whose forms draw one another ten times takes all memory, and a damaged one may
end the process. So the process of `pdf_child` parses each page first, with 2 GB of memory and 8 seconds, and draws it
at 18 dots an inch. That takes 1 to 2 ms a page, where reading one takes 50 and more. Where it dies, the page is
refused. Other systems than Linux bound the time alone.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from framework.core.errors import InputError
from framework.workflow.files import pdf_child

log = logging.getLogger("oar")
_WAIT = 45.0  # seconds for a page, where CPU time cannot be bounded or the process waits for something


class _Child:
    """The one process of this process."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.parent = 0  # the process that started it
        self.document: object = None  # that it has open
        self.cannot_start = False

    def start(self) -> subprocess.Popen[bytes] | None:
        """The running process; None where none can be started."""
        if self.process is not None and self.parent != os.getpid():
            # It is of the process that forked this one, and not ours to wait for.
            _close_pipes(self.process)
            self.process.returncode = 0
            self.process = None
        if self.process is None and not self.cannot_start:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", pdf_child.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,  # Ctrl+C is for this process, which ends the other one
                )
            except (OSError, ValueError) as error:
                log.debug("PDFs are read without a process that looks at them first: %s", error)
                self.cannot_start = True
            self.parent, self.document = os.getpid(), None
        return self.process

    def ask(self, request: dict[str, object], data: bytes | memoryview = b"") -> str:
        """Empty where it has answered; else how it died."""
        process = self.start()
        if process is None:
            return ""
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(_WAIT, process.kill)
        late.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
            if process.stdout.readline():
                return ""
        except OSError:
            pass
        except BaseException:  # Ctrl+C: its answer would be taken for that of the next question
            process.kill()
            raise
        finally:
            late.cancel()
        return self._bury(process)

    def _bury(self, process: subprocess.Popen[bytes]) -> str:
        self.process = None
        status = process.wait()
        _close_pipes(process)
        if status == -getattr(signal, "SIGXCPU", 24):
            return f"more than {pdf_child.SECONDS} seconds of CPU time"
        if status == -9:
            return f"more than {_WAIT:.0f} seconds, or more memory than the system has"
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if self.document is None and status == 1:  # it has never run: no pypdfium2 for it, or no such option
            self.cannot_start = True
            return ""
        return f"{name}, with at most {pdf_child.MEMORY >> 30} GB of memory"

    def close(self) -> None:
        """End it, which it does where nothing more can come."""
        if self.process is not None and self.parent == os.getpid():
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]
            self._bury(self.process)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


_child = _Child()
atexit.register(_child.close)
_lock = threading.RLock()


class PdfGuard:
    """What has been looked at of one document.

    Args:
        data: The document.
        path: Its file, where it is one.
    """

    def __init__(self, data: bytes | memoryview, path: Path | None, password: str | None, where: str) -> None:
        self._data, self._path, self._password, self._where = data, path, password, where
        self._good: set[int] = set()
        self._bad: dict[int, str] = {}
        with _lock:
            if died := self._open():
                raise self._error(died, self._where)

    def check(self, index: int) -> None:
        """Look at page `index` from 0. Raises: InputError, where the process that looks at it dies."""
        with _lock:
            if index in self._good:
                return
            if index not in self._bad:
                opened = "" if _child.document is self and _child.parent == os.getpid() else self._open()
                if died := opened or _child.ask({"page": index}):
                    self._bad[index] = died
        if index in self._bad:
            raise self._error(self._bad[index], f"{self._where}, page {index + 1}")
        self._good.add(index)

    def _open(self) -> str:
        request: dict[str, object] = {"password": self._password}
        if self._path is not None:
            died = _child.ask({**request, "path": str(self._path.resolve())})
        else:
            died = _child.ask({**request, "size": len(self._data)}, self._data)
        _child.document = None if died else self
        return died

    def _error(self, died: str, where: str) -> InputError:
        return InputError(
            "the PDF ends the process that reads it: it is damaged, or made to do so",
            where=where,
            received=died,
            allowed=f"a page that takes at most {pdf_child.SECONDS} s and {pdf_child.MEMORY >> 30} GB at 18 dpi",
            fix="where you trust it: print it to a new PDF, or draw the page as an image with another program",
        )
