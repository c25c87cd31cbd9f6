"""paddle.utils.download: files by URL. Paddle's own cache comes first, then the hub's, which downloads."""

from __future__ import annotations

import gzip
import hashlib
import logging
import tarfile
import zipfile
import zlib
from pathlib import Path

from framework.core.errors import FormatError, HubError
from framework.core.whole_folder import fresh_folder
from framework.hub.store import resolve

logger = logging.getLogger("oar")
WEIGHTS_HOME = Path.home() / ".cache" / "paddle" / "hapi" / "weights"


def _get_unique_endpoints(trainer_endpoints: list[str]) -> set[str]:
    """One address of each machine, the first: the processes that download for the others of their machine."""
    first = {endpoint.rpartition(":")[0]: endpoint for endpoint in reversed(trainer_endpoints)}
    return set(first.values())


def is_url(path: str) -> bool:
    """Whether a text is an address of the web."""
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """The local path of a file of weights.

    Raises:
        HubError: it is not in a cache and cannot be fetched, or has another MD5 sum.
    """
    return get_path_from_url(url, str(WEIGHTS_HOME), md5sum)


def get_path_from_url(
    url: str,
    root_dir: str,
    md5sum: str | None = None,
    check_exist: bool = True,
    decompress: bool = True,
    method: str = "get",
) -> str:
    """The local path of a file: in `root_dir` under its own name, or in the hub's cache.

    Args:
        decompress: Of a zip or tar file the path of what it holds, which is unpacked into `root_dir` once.
        method: Ignored: files are fetched in one way.

    Raises: HubError: it cannot be had, or has another MD5 sum. FormatError: the archive is damaged.
    """
    path = Path(root_dir) / url.rsplit("/", 1)[-1]
    if not (check_exist and path.is_file()):
        path = resolve(url)
    if md5sum is not None and (digest := hashlib.md5(path.read_bytes()).hexdigest()) != md5sum:
        raise HubError("the file is another one", where=str(path), received=f"md5 {digest}", allowed=md5sum)
    archived = decompress and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path))
    return str(unpacked(path, Path(root_dir))) if archived else str(path)


def _decompress(fname: str) -> str:
    """The path of what an archive holds, which is unpacked beside it once."""
    return str(unpacked(Path(fname), Path(fname).parent))


def unpacked(path: Path, folder: Path) -> Path:
    """What an archive holds, unpacked into `folder` once: its one file or folder, or all of it in one of its name."""
    try:
        with tarfile.open(path) if tarfile.is_tarfile(path) else zipfile.ZipFile(path) as archive:
            names = archive.getnames() if isinstance(archive, tarfile.TarFile) else archive.namelist()
            roots = {name.removeprefix("./").partition("/")[0] for name in names} - {"", ".", ".."}
            alone = len(roots) == 1
            target = folder / (roots.pop() if alone else path.name.partition(".")[0])
            if target.exists():
                return target
            folder.mkdir(parents=True, exist_ok=True)
            with fresh_folder(target) as whole:
                _extract(archive, whole)
                (whole / target.name if alone else whole).replace(target)
            return target
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        gzip.BadGzipFile,
        EOFError,
        NotImplementedError,
    ) as error:
        raise FormatError("the archive is damaged", where=str(path), received=str(error)) from error


def _extract(archive: tarfile.TarFile | zipfile.ZipFile, folder: Path) -> None:
    """All of it, and nothing outside the folder: a tar file that would is refused, zipfile leaves such ways out."""
    if isinstance(archive, tarfile.TarFile):
        archive.extractall(folder, filter="data")
        assert archive.fileobj is not None  # it is open
        while archive.fileobj.read(1 << 20):  # to the end, where gzip keeps the sum that it is checked by
            pass
    else:
        archive.extractall(folder)
