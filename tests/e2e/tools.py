"""The tools as functions: `main(argv)` of tools/<name>.py in this process, which has jax and its programs already.

Starting a process costs four seconds before the tool begins. One test of each tool, and all that kill one, start real
processes.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from framework.commands.main import main as oar

REPO = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def _captured(
    descriptor: int, redirect: Callable[[TextIO], contextlib.AbstractContextManager]
) -> Iterator[TextIO]:
    """What Python and libraries below it (OpenCV, FFmpeg) write to a file descriptor."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        before = os.dup(descriptor)
        os.dup2(file.fileno(), descriptor)
        try:
            with redirect(file):
                yield file
        finally:
            os.dup2(before, descriptor)
            os.close(before)


def run_tool(name: str, *arguments: object, cwd: Path = REPO) -> subprocess.CompletedProcess[str]:
    """`oar <name>`, or tools/<name>.py, with these arguments as a process would end: exit status, stdout and stderr."""
    argv = [str(argument) for argument in arguments]
    if (REPO / "tools" / f"{name}.py").is_file():
        main = importlib.import_module(f"tools.{name}").main
    else:
        main, argv = oar, [name, *argv]
    with (
        _captured(1, contextlib.redirect_stdout) as out,
        _captured(2, contextlib.redirect_stderr) as err,
        contextlib.chdir(cwd),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            code = main(argv)
        except SystemExit as error:  # argparse
            code = error.code
        texts = []
        for file in (out, err):
            file.flush()
            file.seek(0, io.SEEK_SET)
            texts.append(file.read())
    assert "Traceback" not in "".join(texts), texts
    return subprocess.CompletedProcess([name, *argv], int(code or 0), *texts)
