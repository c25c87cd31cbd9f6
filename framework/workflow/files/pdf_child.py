"""The process that looks at pages of PDFs before `PdfReader` does: a program of its own, see `pdf_guard`.

In: a line of JSON, `{"path": ...}` or `{"size": bytes}` with the bytes behind it, and `{"page": index}`. Out: a line
for each, which says nothing more than that this process is still there. It imports nothing of the toolkit, so it starts
in 50 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pypdfium2

MEMORY = 2 << 30
"""Bytes of address space. A page with an image of 20,000 x 20,000 pixels takes 1.2 GB."""
SECONDS = 8
"""Of CPU time for a page."""
_SCALE = 0.25  # 18 dots an inch: whatever a page draws is drawn, but on few pixels


def main() -> None:
    """Answer until the other end of the pipe is closed."""
    import pypdfium2  # not above: the toolkit imports this file, and the package is optional

    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    document: pypdfium2.PdfDocument | None = None
    _limit_memory()
    while line := requests.readline():
        request = json.loads(line)
        _limit_time()
        try:
            if "page" in request:
                if document is not None:
                    _look(document, request["page"])
            else:
                if document is not None:
                    document.close()
                    document = None
                source = requests.read(request["size"]) if "size" in request else request["path"]
                document = pypdfium2.PdfDocument(source, password=request["password"])
                if document.get_formtype():
                    document.init_forms()
        except MemoryError:
            os.abort()
        except Exception:  # it comes again where it can be told
            pass
        answers.write(b"\n")
        answers.flush()


def _look(document: pypdfium2.PdfDocument, index: int) -> None:
    page = document[index]
    page.get_textpage().close()
    width, height = page.get_size()
    page.render(scale=min(_SCALE, 1000 / max(width, height, 1))).close()
    page.close()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _limit_time() -> None:
    try:
        import resource
    except ImportError:
        return
    used, hard = os.times(), resource.getrlimit(resource.RLIMIT_CPU)[1]
    limit = int(used.user + used.system) + SECONDS + 1
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
        )


if __name__ == "__main__":
    main()
