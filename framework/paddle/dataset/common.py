"""paddle.dataset.common: where data sets lie, and files of them by URL."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from framework.core.errors import HubError
from framework.hub.store import resolve

DATA_HOME = str(Path.home() / ".cache" / "paddle" / "dataset")


def md5file(fname: str) -> str:
    """The MD5 sum of a file, in hexadecimal digits."""
    with open(fname, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def download(url: str, module_name: str, md5sum: str, save_name: str | None = None) -> str:
    """The local path of a file of a data set: in `DATA_HOME/module_name`, where it is fetched to.

    Raises:
        HubError: it cannot be fetched, or is another file than the sum says.
    """
    path = Path(DATA_HOME) / module_name / (save_name or url.rsplit("/", 1)[-1])
    if path.is_file() and md5file(str(path)) == md5sum:
        return str(path)
    fetched = resolve(url)
    if (digest := md5file(str(fetched))) != md5sum:
        raise HubError(
            "the file is another one", where=str(fetched), received=f"md5 {digest}", allowed=md5sum
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(fetched, path)
    return str(path)


_download = download


def _check_exists_and_download(
    path: str | None, url: str, md5: str, module_name: str, download: bool = True
) -> str:
    """This path where there is such a file, else that of the download.

    Raises:
        ValueError: there is none, and `download` is off.
    """
    if path and Path(path).exists():
        return path
    if not download:
        raise ValueError(f"{path} not exists and auto download disabled")
    return _download(url, module_name, md5)
