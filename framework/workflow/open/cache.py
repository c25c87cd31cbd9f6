"""Artifacts that are made once and kept: what lets a config start as fast as an exported folder.

The folder's name holds a fingerprint of everything that the artifact depends on, so a change of any makes a new one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from framework.core.compilation import jax_version
from framework.core.errors import OarError
from framework.core.home import home
from framework.export.artifact import Artifact, load_artifact

log = logging.getLogger("oar")
_SOURCES = (
    "framework.core",
    "framework.nn",
    "framework.export",
    "framework.interop",
    "framework.workflow",
    "zoo",
)


def keep_artifact(
    name: str, text: str, files: Sequence[Path], packages: Iterable[str], make: Callable[[], Artifact]
) -> Artifact:
    """The artifact of these settings: from OAR_HOME if it was made before, else made now and kept there.

    Args:
        name: Begins the folder's name.
        text: The resolved settings.
        files: The user's own files that go into it. Weights of the hub are pinned by its sha256.
        packages: Packages whose sources it depends on, besides the framework's and the zoo's.
        make: Makes it.
    """
    folder = home() / "artifacts" / f"{name}-{_fingerprint(text, files, packages)}"
    try:
        if folder.is_dir():
            return load_artifact(folder, trust=True)  # made of the user's own configuration
    except (OarError, OSError) as error:
        log.warning("the kept artifact cannot be read and is made again: %s", error)
        shutil.rmtree(folder, ignore_errors=True)
    log.info("preparing %s for this machine (once)", name)
    artifact = make()
    try:
        artifact.save(folder)
    except (OarError, OSError) as error:
        log.warning("the artifact is not kept: %s", error)
    return artifact


def _fingerprint(text: str, files: Sequence[Path], packages: Iterable[str]) -> str:
    digest = hashlib.sha256(f"{jax_version()}\n{text}\n".encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    for package in dict.fromkeys((*_SOURCES, *packages)):
        if package == "framework":  # the parts of it that make programs are listed
            continue
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            for file in sorted(Path(folder).rglob("*.py")) + sorted(Path(folder).rglob("*.yml")):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
