"""The artifact: a folder that runs without the model's code, flax or optax.

    <name>/
      model.jaxexp             the program in float32 (StableHLO, weights as arguments, several platforms)
      model.bfloat16.jaxexp    the same with bfloat16 dots, where the exporter was asked for it
      model.safetensors        the weights
      infer_cfg.yml            inputs, outputs, preprocessing, postprocessing, labels, versions, sha256, provenance
      <stage>/…                artifacts of the stages of a pipeline

jax promises to read such a program for six months. After that `load_artifact` says so, and the program is made again
from config and weights with tools/export_model.py.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml
from jax import export

from framework.core.errors import FormatError

FORMAT = 1
CONFIG = "infer_cfg.yml"
WEIGHTS = "model.safetensors"


def program_file(precision: str) -> str:
    return "model.jaxexp" if precision == "float32" else f"model.{precision}.jaxexp"


@dataclass
class Artifact:
    """A program in one or more precisions with its weights, and stages when it is a pipeline.

    `config` is free-form plain data: what the domain needs to run it (preprocessing, postprocessing, labels, …).
    """

    config: dict[str, Any]
    programs: dict[str, export.Exported] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    stages: dict[str, Artifact] = field(default_factory=dict)

    def save(self, folder: str | Path) -> Path:
        """Write the folder. It appears whole or not at all; an older artifact of that name is replaced.

        Raises:
            FormatError: `folder` exists and is not an artifact, so it is left alone.
        """
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()) and not (folder / CONFIG).exists():
            raise FormatError(
                "the output folder holds something that is not an artifact",
                where=folder,
                received=", ".join(sorted(p.name for p in folder.iterdir())[:5]),
                allowed=f"a new folder, an empty one, or an artifact (with {CONFIG}) to replace",
                fix="choose another --output_dir",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
            fresh = Path(work) / "new"
            self._write(fresh)
            if folder.exists():
                os.replace(folder, Path(work) / "old")
            os.replace(fresh, folder)
        return folder

    def _write(self, folder: Path) -> None:
        from framework.io.interop import write_safetensors

        folder.mkdir(parents=True)
        files = {}
        for precision, program in self.programs.items():
            (folder / program_file(precision)).write_bytes(program.serialize())
            files[program_file(precision)] = _sha256(folder / program_file(precision))
        if self.weights:
            write_safetensors(folder / WEIGHTS, self.weights)
            files[WEIGHTS] = _sha256(folder / WEIGHTS)
        for name, stage in self.stages.items():
            stage._write(folder / name)
        first = next(iter(self.programs.values()), None)
        head = {
            "format": FORMAT,
            "made_on": date.today().isoformat(),
            "versions": {"jax": jax.__version__},
            "platforms": list(first.platforms) if first else [],
            "stages": list(self.stages),
            "sha256": files,
        }
        text = yaml.safe_dump({**head, **self.config}, sort_keys=False, allow_unicode=True, width=110)
        (folder / CONFIG).write_text(text, encoding="utf-8")


def load_artifact(folder: str | Path, verify: bool = False, stages: bool = True) -> Artifact:
    """Read an artifact folder. With `verify` the sha256 of every file is compared with its config.

    Without `stages` only this folder's own program is read, and the config.

    Raises:
        FormatError: not an artifact, of another format, damaged, or older than jax reads.
    """
    folder = Path(folder)
    path = folder / CONFIG
    if not path.is_file():
        raise FormatError(
            "this is not an artifact folder",
            where=folder,
            received=f"no {CONFIG} in it" if folder.is_dir() else "no such folder",
            allowed="a folder written by tools/export_model.py",
        )
    try:
        config = yaml.load(
            path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FormatError("the artifact's config is damaged", where=path, received=str(error)) from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise FormatError(
            "an artifact of another format",
            where=path,
            received=f"format {config.get('format') if isinstance(config, dict) else None}",
            allowed=f"format {FORMAT}",
            fix="export it again with this version of Oar",
        )
    if verify:
        _verify(folder, config)
    programs = {}
    for precision in ("float32", "bfloat16"):
        file = folder / program_file(precision)
        if file.exists():
            programs[precision] = _read_program(file, config)
    below = config.get("stages", ()) if stages else ()
    found = {name: load_artifact(folder / name, verify) for name in below}
    weights = {}
    if (folder / WEIGHTS).exists():
        from framework.io.interop import load_weights

        weights = load_weights(folder / WEIGHTS)
    return Artifact(config, programs, weights, found)


def _read_program(file: Path, config: dict[str, Any]) -> export.Exported:
    try:
        return export.deserialize(bytearray(file.read_bytes()))
    except Exception as error:  # jax raises many types here: expired, newer than this jax, truncated
        made = config.get("versions", {}).get("jax", "?")
        raise FormatError(
            "this jax cannot read the program",
            where=file,
            received=f"made by jax {made} on {config.get('made_on', '?')}; this is jax {jax.__version__}: {error}",
            allowed="programs of a jax at most six months older and three weeks newer",
            fix="export it again from config and weights with tools/export_model.py",
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(folder: Path, config: dict[str, Any]) -> None:
    for name, expected in config.get("sha256", {}).items():
        if not (folder / name).is_file() or _sha256(folder / name) != expected:
            raise FormatError(
                "a file of the artifact is missing or damaged",
                where=folder / name,
                allowed=f"a file with sha256 {expected}",
                fix="copy the artifact again or export it anew",
            )


def remove_artifact(folder: Path) -> None:
    """Delete an artifact folder; a folder that is none is left alone."""
    if (folder / CONFIG).is_file():
        shutil.rmtree(folder)
