"""Files and folders that commands about data write: new, and whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from framework.core.disk import disk_errors
from framework.core.errors import InputError


@contextmanager
def write_whole(targets: Sequence[Path]) -> Iterator[None]:
    """What the block writes to the targets, which are new, stays whole or not at all. Raises: DiskError."""
    try:
        with disk_errors(targets[0].parent):
            yield
    except BaseException:
        for target in targets:
            shutil.rmtree(target, ignore_errors=True)
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            targets[0].parent.rmdir()  # where nothing else is in it
        raise


def check_new(targets: Iterable[Path]) -> None:
    """Raises: InputError, where one of the targets is there."""
    if there := [str(path) for path in targets if path.exists()]:
        raise InputError(
            "the output is there already", where=there[0], fix="name another folder, or move it away"
        )
