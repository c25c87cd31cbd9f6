"""The folder of a page: models, manifest.json, ONNX Runtime Web and the page's own files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from framework.core.disk import disk_errors
from framework.core.errors import ConfigError, FormatError
from framework.core.types import JSON
from framework.core.whole_folder import put_in_place, work_folder
from framework.export.artifact import ONNX, Artifact
from framework.workflow.export.web.runtime_files import NAME, VERSION, copy_runtime

SITE = Path(__file__).parent / "site"
MANIFEST = "manifest.json"
_FORMAT = 1
_SERVED = (*(".js", ".mjs", ".css", ".html", ".json", ".wasm", ".onnx"), ".webmanifest", ".svg")


@dataclass(frozen=True)
class PageOptions:
    """How a page is written.

    Attributes:
        packages: A node_modules with onnxruntime-web; None: it comes from npm's registry.
        webgpu: Whether the folder has the build for GPUs, 27 MB, besides that for CPUs.
    """

    packages: Path | None = None
    webgpu: bool = True


def write_page(
    artifact: Artifact, module: str, parameters: Mapping[str, JSON], folder: Path, options: PageOptions
) -> Path:
    """Writes the page of an artifact whose programs stand in it as ONNX; it appears whole or not at all.

    Args:
        module: Of the page's modules the one that reads what the programs give.
        parameters: What that module needs, for manifest.json.

    Raises:
        FormatError: the artifact has no ONNX file, or `folder` holds something else than a page.
        ConfigError: a model is larger than 2 GB, which no browser loads. Others: as `copy_runtime`.
    """
    _check_output(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(folder, 0), work_folder(folder) as work:
        new = work / "new"
        shutil.copytree(SITE, new)
        stages = artifact.stages or {"model": artifact}
        models: dict[str, JSON] = {name: _write_model(one, name, new) for name, one in stages.items()}
        copy_runtime(new / "ort", options.packages, options.webgpu)
        manifest = {
            "format": _FORMAT,
            "name": str(artifact.config.get("name", "")),
            "made_on": date.today().isoformat(),
            "runtime": {"name": NAME, "version": VERSION, "webgpu": options.webgpu},
            "module": module,
            "models": models,
            "parameters": parameters,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False)
        (new / MANIFEST).write_text(text, encoding="utf-8")
        _set_version(new)
        put_in_place(work, folder)
    return folder


def _write_model(artifact: Artifact, name: str, folder: Path) -> dict[str, JSON]:
    work = folder / f"{name}.writing"
    work.mkdir()
    paths = [path for one in artifact.formats for path in one.write(work)]
    if [path.name for path in paths] != [ONNX]:
        if paths:
            raise ConfigError(
                "a browser takes no model of more than 2 GB",
                where=name,
                received=", ".join(path.name for path in paths),
            )
        raise FormatError(
            "the artifact has no ONNX file",
            where=artifact.source,
            received=f"no {ONNX} of {name}",
            fix="export it with `oar export -c … --format web`, or first with --format onnx",
        )
    target = folder / f"{name}.onnx"
    paths[0].rename(target)
    work.rmdir()
    return {
        "file": target.name,
        "bytes": target.stat().st_size,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        "inputs": artifact.config.get("inputs", {}),
    }


def _set_version(folder: Path) -> None:
    """Names the cache of the service worker after what the folder holds, so that a new export takes its place."""
    sums = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SERVED):
        sums.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            sums.update(hashlib.file_digest(file, "sha256").digest())
    worker = folder / "sw.js"
    text = worker.read_text(encoding="utf-8").replace('"development"', f'"{sums.hexdigest()[:16]}"', 1)
    worker.write_text(text, encoding="utf-8", newline="\n")


def _check_output(folder: Path) -> None:
    if not folder.exists():
        return
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [folder.name]
    if names and not {MANIFEST, "sw.js", "index.html"} <= set(names):
        raise FormatError(
            "the output folder holds something that is no page",
            where=folder,
            received=", ".join(names[:5]),
            allowed="a new folder, an empty one, or a page to replace",
            fix="choose another folder, or move these files away",
        )
