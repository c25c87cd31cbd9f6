"""ONNX Runtime Web, which runs the models of a page: its files as npm has them, never part of this package."""

from __future__ import annotations

import shutil
from pathlib import Path

from framework import hub
from framework.core.errors import HubError, InputError
from framework.hub.archive import extract_member
from framework.hub.store import digest

NAME, VERSION = "onnxruntime-web", "1.30.0"
_ARCHIVE = (
    f"https://registry.npmjs.org/{NAME}/-/{NAME}-{VERSION}.tgz"
    "#sha256=d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
)
WASM_FILES = {
    "ort.wasm.min.mjs": "219e6a1fc8a9938268d18efca3c91d310bd2f4a59bbd13744df5b2b7fc6cee3b",
    "ort-wasm-simd-threaded.mjs": "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
"""What runs on the CPU, with SIMD, and with threads where the page is isolated: 14.3 MB."""
WEBGPU_FILES = {
    "ort.webgpu.min.mjs": "3dffff71811bc13a3a3d9591c57ca5ee5735b8f5f3eaf789510b02bb040ae3a0",
    "ort-wasm-simd-threaded.asyncify.mjs": "3d1c85995364bb643302fc6fd877a0c3ba5ae72401815e0f24828a53d9191e28",
    "ort-wasm-simd-threaded.asyncify.wasm": "39f9f0894d478800487ed9f7dbe92618498db320cf55c8e3d89adff8dce658da",
}
"""What runs on a GPU by WebGPU: 26.9 MB."""
_NOTICE = f"""{NAME} {VERSION}, the files ort*.mjs and ort*.wasm of this folder.
Copyright (c) Microsoft Corporation. Licensed under the MIT License.
Source and licence: https://github.com/microsoft/onnxruntime/tree/v{VERSION}
"""


def copy_runtime(folder: Path, packages: Path | None = None, webgpu: bool = True) -> None:
    """Writes the files into a folder, from `packages` (a node_modules that has them) or else from npm's registry.

    What npm's registry gives stays in OAR_HOME. Files are compared with their SHA-256 wherever they come from.

    Raises:
        InputError: `packages` has none of that version. HubError: the registry cannot be reached, or gave another file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {**WASM_FILES, **(WEBGPU_FILES if webgpu else {})}
    for name, sha256 in files.items():
        if packages is None:
            extract_member(_fetch_archive(), f"package/dist/{name}", folder / name)
        else:
            _copy(packages / NAME / "dist" / name, folder / name)
        if (received := digest(folder / name, fresh=True)) != sha256:
            raise InputError(
                f"this is another file than that of {NAME} {VERSION}",
                where=name,
                received=f"sha256 {received}",
                allowed=f"sha256 {sha256}",
                fix=f"npm install {NAME}@{VERSION}",
            )
    (folder / "NOTICE.txt").write_text(_NOTICE, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise InputError(
            f"this node_modules has no {NAME}",
            where=source,
            received="no such file",
            fix=f"npm install {NAME}@{VERSION} beside it",
        )
    shutil.copyfile(source, target)


def _fetch_archive() -> Path:
    try:
        return hub.resolve(_ARCHIVE)
    except HubError as error:
        raise HubError(
            f"{NAME} {VERSION}, which runs the models of the page, cannot be had",
            where=error.where,
            received=error.received,
            fix=f"with a network: npm install {NAME}@{VERSION}, then --node_modules FOLDER; or export where the "
            "registry can be reached once, and copy OAR_HOME",
        ) from error
