"""Files and folders that commands about data write: new, and whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from framework.core.disk import disk_errors, whole_folder
from framework.core.errors import InputError
from framework.core.whole_folder import fresh_folder, remove_leftovers


@contextmanager
def write_whole(output: Path, names: Sequence[str]) -> Iterator[Path]:
    """An empty hidden folder to write `names` into, which are then moved into `output`, where they are new.

    A process that is killed leaves nothing there: what it had written is removed by the next one. A new output appears
    in one step. Where the folder is there with other files, the names are moved one after another, each of them whole,
    the first one last.

    Raises:
        DiskError: the disk takes no more; nothing of the names stays.
    """
    if not os.path.lexists(output):
        with disk_errors(output.parent), whole_folder(output) as folder:
            yield folder
        return
    with contextlib.ExitStack() as stack:
        with disk_errors(output):
            remove_leftovers(output.resolve())
            folder = stack.enter_context(fresh_folder(output / names[0]))
        with disk_errors(output):
            yield folder
        moved: list[Path] = []
        try:
            with disk_errors(output):
                for name in [one for one in (*names[1:], names[0]) if (folder / one).exists()]:
                    os.replace(folder / name, output / name)
                    moved.append(output / name)
        except BaseException:
            for path in moved:
                with contextlib.suppress(OSError):
                    os.replace(path, folder / path.name)
            raise


def check_new(targets: Iterable[Path]) -> None:
    """Raises: InputError, where one of the targets is there."""
    if there := [str(path) for path in targets if path.exists()]:
        raise InputError(
            "the output is there already", where=there[0], fix="name another folder, or move it away"
        )
