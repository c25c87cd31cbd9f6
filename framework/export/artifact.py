"""The artifact: a folder that runs without the model's code, flax or optax.

    <name>/
      model.jaxexp             the program in float32 (StableHLO, weights as arguments, several platforms)
      model.bfloat16.jaxexp    the same with bfloat16 dots, where the exporter was asked for it
      program_weights.safetensors   the weights as the programs take them: kernels of convolutions are HWIO, where a
                               checkpoint's model.safetensors has them OIHW; after `oar quantize` they are int8
      model.onnx               the program as ONNX with its weights, where the exporter was asked for it; beyond 2 GB
                               they are in model.onnx.data
      model.tflite             the program for LiteRT, with fixed sizes, where the exporter was asked for it
      model.ort                the ONNX file as ONNX Runtime's packages for phones read it, and the operators in it
      tokenizer.json, …        what the transforms read
      characters.txt, …        long lists of the config, an item a line (18,000 symbols are slow to read as YAML)
      infer_cfg.yml            inputs, outputs, preprocessing, postprocessing, labels, versions, sha256, provenance
      <stage>/…                artifacts of the stages of a pipeline

jax promises to read such a program for six months. After that `load_artifact` says so, and the program is made again
from config and weights with `oar export`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_type_hints

import numpy as np
import yaml

from framework.config.bind import bind, spell
from framework.config.tree import Tree, from_plain, parse
from framework.core.bounded import DATASET, SETTINGS, decode, read_bytes, read_text
from framework.core.compilation import jax_version
from framework.core.disk import check_place, disk_errors, sha256_of
from framework.core.errors import ConfigError, FormatError
from framework.core.lazy import LazyModule
from framework.core.transform import SampleT, Transform
from framework.core.types import JSON
from framework.core.whole_folder import (
    OF_THE_FILE_SYSTEM,
    put_in_place,
    recover,
    remove_leftovers,
    work_folder,
)
from framework.export.foreign_program import check_calls
from framework.export.program_bytes import Program, StoredProgram

if TYPE_CHECKING:
    from jax import export
else:
    export = LazyModule("jax.export")

# libyaml's, where PyYAML was built with it: a dictionary of 18,000 characters takes Python's second.
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
FORMAT = 2  # 1: weights in model.safetensors, other names of stages
CONFIG = "infer_cfg.yml"
WEIGHTS = "program_weights.safetensors"
PRECISIONS = ("float32", "bfloat16")


LONG = 512  # a list of so many texts has a file of its own beside the config
ONNX = "model.onnx"
_SCALE = "::scale"
ONNX_FILES = (ONNX, f"{ONNX}.data")
TFLITE = "model.tflite"
ORT, ORT_OPERATORS = "model.ort", "required_operators.config"
LABELS_FILE = "labels.txt"
FORMAT_FILES = (*ONNX_FILES, TFLITE, LABELS_FILE, ORT, ORT_OPERATORS)
"""Files of other formats: the engine that runs one reads it, and nothing else does."""


def program_file(precision: str) -> str:
    """The file in an artifact that holds the program of this precision."""
    return "model.jaxexp" if precision == "float32" else f"model.{precision}.jaxexp"


@dataclass(frozen=True)
class ArtifactSettings:
    """What is the same in the configs of all artifacts; a domain's own keys stand beside it, see `Artifact.setting`.

    Attributes:
        bf16_verified: The score in bfloat16 was measured and holds.
        engines: For a kind of device ("cpu", "gpu") the engines that were measured with the score held, fastest first.
        lists: Keys whose value is a list of texts in a file of its own, <key>.txt.
        bf16_engines: Engines of ONNX files whose score in bfloat16 was measured and holds, whatever that of XLA does.
    """

    format: int
    made_on: str
    versions: dict[str, str]
    stages: tuple[str, ...]
    sha256: dict[str, str]
    platforms: tuple[str, ...] = ()
    domain: str | None = None
    name: str | None = None
    imports: tuple[str, ...] = ()
    batch_size: int | None = None
    labels: tuple[str, ...] = ()
    buckets: tuple[int, ...] | None = None
    bf16_verified: bool = False
    engines: dict[str, tuple[Literal["xla", "onnxruntime", "openvino"], ...]] = field(default_factory=dict)
    lists: tuple[str, ...] = ()
    bf16_engines: tuple[Literal["onnxruntime", "openvino"], ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.stages, *self.sha256):
            if name != Path(name).name or name in ("", ".", ".."):
                raise ConfigError(
                    f"the name {name!r} leads out of the folder", allowed="names without folders"
                )
        if missing := [name for name in self.lists if _list_file(name) not in self.sha256]:
            raise ConfigError(
                "a list of the config has no file",
                received=f"lists: {', '.join(missing)}",
                allowed="names of lists whose files are in sha256",
            )
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(
                "a batch needs a sample", received=f"batch_size: {self.batch_size}", allowed="1 or more"
            )
        if self.buckets is not None and (not self.buckets or min(self.buckets) < 1):
            raise ConfigError("buckets are lengths", received=list(self.buckets), allowed="1 or more of them")


def _list_file(key: str) -> str:
    """The file that holds a long list of the config."""
    return f"{key}.txt"


def _is_long_list(key: str, value: object) -> bool:
    """Whether a value of the config has a file of its own: texts without line ends, many of them."""
    return (
        isinstance(value, list | tuple)
        and len(value) >= LONG
        and key not in _HINTS
        and key.isidentifier()
        and all(isinstance(item, str) and "\n" not in item for item in value)
        and not value[0].startswith("\ufeff")  # which readers of texts take for a byte order mark
    )


class FormatFiles(Protocol):
    """A program in another format, which an artifact holds as files."""

    @property
    def size(self) -> int:
        """About how many bytes the files take."""
        ...

    def write(self, folder: Path) -> Sequence[Path]:
        """Write the files into a folder that exists; returns where they are."""
        ...


@dataclass(frozen=True)
class StoredFiles:
    """Those of an artifact that was loaded, where they lie: they are not read, but by the engine that runs them."""

    paths: tuple[Path, ...]

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.paths)

    def write(self, folder: Path) -> Sequence[Path]:
        return [Path(shutil.copyfile(path, folder / path.name)) for path in self.paths]


_HINTS = get_type_hints(ArtifactSettings)
_NEEDED = object()  # stands for no default


@dataclass
class Artifact:
    """A program in one or more precisions with its weights, and stages when it is a pipeline.

    `config` is plain data: ArtifactSettings and what the domain needs to run it (preprocessing, palette, …).
    """

    config: dict[str, Any]
    programs: dict[str, Program] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    scales: dict[str, np.ndarray] = field(default_factory=dict)
    """Of weights that the file holds as int8, value = scale * int8; a scale has the axes of its weight."""
    stages: dict[str, Artifact] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """What the transforms read, by name: see `pack_assets`."""
    formats: tuple[FormatFiles, ...] = ()
    """The program in other formats: ONNX, .tflite, .ort."""
    tree: Tree | None = None
    """The config as it was read: file and lines for messages."""
    folder: Path | None = None
    """Where it was read from or saved to last: engines of other formats than ours read their files there."""
    trusted: bool = True
    """Whether code that its config names (`imports`) may run: that of one made here may."""

    @property
    def source(self) -> str:
        """What messages call it: the file of its config, or the name in it."""
        return str(self.config.get("name", "artifact")) if self.tree is None else self.tree.where.source

    @property
    def onnx_file(self) -> Path | None:
        """The program as ONNX, where this artifact was loaded from or saved to a folder that has it: a file whose
        sha256 is in the config, not one that was put beside it."""
        return self.format_file(ONNX)

    def format_file(self, name: str) -> Path | None:
        """As `onnx_file`, of any of FORMAT_FILES."""
        path = None if self.folder is None or not self.formats else self.folder / name
        return path if path is not None and path.is_file() else None

    def setting(
        self, key: str, hint: object = None, default: object = _NEEDED, packages: Sequence[str] = ()
    ) -> Any:
        """The value of a key of the config, bound to a type hint (framework/config/bind.py).

        Args:
            hint: None for the keys of ArtifactSettings, which have theirs.
            default: Instead of an error where there is no such key.
            packages: Where components are.

        Raises:
            ConfigError: the value is of another kind; with file and line. FormatError: the key is missing.
        """
        hint = _HINTS[key] if hint is None else hint
        if key not in self.config:
            if default is not _NEEDED:
                return default
            raise FormatError(
                f"the artifact's config has no {key!r}",
                where=self.source,
                received=f"the keys {', '.join(map(str, self.config))}",
                allowed=f"{key}: {spell(hint)}",
                fix="export it again with `oar export`",
            )
        value = self.config[key]
        if hint == tuple[str, ...] and isinstance(value, list) and all(type(item) is str for item in value):
            return tuple(value)  # as bound, without a node for each of thousands of symbols
        written = None if self.tree is None else self.tree.value.get(key)
        # Settings given on the command line change `config`, not what was read.
        if written is None or written.plain() != value:
            written = from_plain(value, self.source)
        return bind(written, hint, packages, key)

    def input_names(self, known: Iterable[str]) -> list[str]:
        """The program's inputs in the order of the config. Raises: FormatError, unless they are the `known` ones."""
        input_names = self.config.get("inputs") or list(known)
        names = (
            [str(name) for name in input_names]
            if isinstance(input_names, dict | list)
            else [str(input_names)]
        )
        if set(names) != set(known):
            raise FormatError(
                "the artifact's config names other inputs than its program",
                where=self.source,
                received=", ".join(names)[:200],
                allowed=", ".join(known),
                fix="copy the artifact again or export it anew",
            )
        return names

    def save(self, folder: str | Path) -> Path:
        """Write the folder. It appears whole or not at all; an older artifact of that name is replaced.

        Raises:
            FormatError: `folder` exists and holds something else than an artifact, so it is left alone.
            DiskError: the disk is full, or may not be written to; what was there stays.
        """
        folder = Path(folder)
        check_output(folder)
        with disk_errors(folder, self._size()):
            self._replace(folder)
        self._set_folder(folder)
        return folder

    def _set_folder(self, folder: Path) -> None:
        self.folder = folder
        for name, stage in self.stages.items():
            stage._set_folder(folder / name)

    def _size(self) -> int:
        """Bytes of its weights and files, without those of the programs."""
        of_weights = sum(a.size if n in self.scales else a.nbytes for n, a in self.weights.items())
        of_weights += sum(map(len, self.files.values()))
        of_weights += sum(one.size for one in self.formats)
        return of_weights + sum(stage._size() for stage in self.stages.values())

    def _replace(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with work_folder(folder) as work:
            self._write(work / "new")
            put_in_place(work, folder)

    def _write(self, folder: Path) -> None:
        from framework.interop import write_safetensors

        folder.mkdir(parents=True)
        files = {}
        for precision, program in self.programs.items():
            (folder / program_file(precision)).write_bytes(program.serialize())
            files[program_file(precision)] = sha256_of(folder / program_file(precision))
        if self.weights:
            write_safetensors(folder / WEIGHTS, pack_weights(self.weights, self.scales))
            files[WEIGHTS] = sha256_of(folder / WEIGHTS)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
            files[name] = sha256_of(folder / name)
        for one in self.formats:
            files |= {path.name: sha256_of(path) for path in one.write(folder)}
        lists = {
            key: value
            for key, value in self.config.items()
            if _is_long_list(key, value) and _list_file(key) not in files
        }
        for key, value in lists.items():
            (folder / _list_file(key)).write_bytes("\n".join(value).encode())
            files[_list_file(key)] = sha256_of(folder / _list_file(key))
        for name, stage in self.stages.items():
            stage._write(folder / name)
        first = next(iter(self.programs.values()), None)
        head = {
            "format": FORMAT,
            "made_on": date.today().isoformat(),
            "versions": {"jax": jax_version()},
            "platforms": list(first.platforms) if first else [],
            "stages": list(self.stages),
            "sha256": files,
            **({"lists": list(lists)} if lists else {}),
        }
        settings = {key: value for key, value in self.config.items() if key not in (*lists, "lists")}
        # A loaded artifact that is written again keeps the age of its programs, and nothing else of its old head.
        age = {name: self.config[name] for name in ("made_on", "versions") if name in self.config}
        text = yaml.dump(
            {**head, **settings, **head, **age},
            None,
            _Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=110,
        )
        (folder / CONFIG).write_text(text, encoding="utf-8")


def load_artifact(
    folder: str | Path, verify: bool = True, stages: bool = True, *, trust: bool = False
) -> Artifact:
    """Read an artifact folder. No code that it names is run here.

    Args:
        verify: Compare the sha256 of every file with the config's: about a second for a gigabyte of weights.
        stages: Without them only this folder's own program is read, and the config.
        trust: Code that its config names by `imports` may run when a predictor is made of it.

    Raises:
        FormatError: not an artifact, of another format, damaged, or older than jax reads. A program of this very jax
            is read when it is first needed.
    """
    folder = Path(folder)
    tree = _read_config(folder)
    config = tree.plain()
    _check_files(folder, config["sha256"], verify)
    programs = {
        precision: _read_program(folder / program_file(precision), config)
        for precision in PRECISIONS
        if program_file(precision) in config["sha256"]
    }
    artifacts = {
        name: load_artifact(folder / name, verify, trust=trust) for name in config["stages"] if stages
    }
    weights, scales = {}, {}
    if WEIGHTS in config["sha256"]:
        from framework.interop import load_weights

        weights, scales = unpack_weights(load_weights(folder / WEIGHTS), folder / WEIGHTS)
    lists = {key: _list_file(key) for key in config.pop("lists", ())}
    for key, name in lists.items():
        data = read_bytes(folder / name, DATASET, "list of the artifact's config")
        config[key] = decode(data, folder / name, "list of the artifact's config").split("\n")
    files = {
        name: read_bytes(folder / name, DATASET, "file of the artifact")
        for name in config["sha256"]
        if name not in (WEIGHTS, *FORMAT_FILES, *lists.values()) and not name.endswith(".jaxexp")
    }
    stored = tuple(folder / name for name in FORMAT_FILES if name in config["sha256"])
    formats = (StoredFiles(stored),) if stored else ()
    return Artifact(config, programs, weights, scales, artifacts, files, formats, tree, folder, trust)


def pack_weights(
    weights: Mapping[str, np.ndarray], scales: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Weights as the file holds them: those with a scale as int8, and the scale under their name with ``::scale``."""
    packed = dict(weights)
    for name, scale in scales.items():
        packed[name] = np.rint(weights[name] / scale).astype(np.int8)
        packed[name + _SCALE] = scale
    return packed


def unpack_weights(
    arrays: Mapping[str, np.ndarray], where: Path
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(weights, scales) of what a file holds. Raises: FormatError, where a scale has no weight that it fits."""
    weights = {name: array for name, array in arrays.items() if not name.endswith(_SCALE)}
    scales = {name.removesuffix(_SCALE): a for name, a in arrays.items() if name.endswith(_SCALE)}
    for name, scale in scales.items():
        weight = weights.get(name)
        if weight is None or weight.dtype != np.int8 or weight.ndim != scale.ndim:
            raise FormatError(
                "a scale has no weight in int8",
                where=where,
                received=name + _SCALE,
                allowed=f"{name} in int8 with as many axes",
                fix="copy the artifact again or export it anew",
            )
        weights[name] = weight * scale
    return weights, scales


def pack_assets(
    transforms: Iterable[Transform[SampleT]],
) -> tuple[tuple[Transform[SampleT], ...], dict[str, bytes]]:
    """Transforms as they stand in an artifact, and the files that they need there, by name.

    Raises:
        ConfigError: two transforms need different files of one name.
    """
    transforms_left, files = [], {}
    for transform in transforms:
        packed, assets = transform.pack_assets()
        for name, data in assets.items():
            if files.setdefault(name, data) != data:
                raise ConfigError(
                    "two transforms of one artifact need different files of one name",
                    where=type(transform).__name__,
                    received=name,
                    fix="use one of them",
                )
        transforms_left.append(packed)
    return tuple(transforms_left), files


def load_assets(
    transforms: Iterable[Transform[SampleT]], files: Mapping[str, bytes]
) -> tuple[Transform[SampleT], ...]:
    """The transforms of an artifact with its files, where they need any. Raises: FormatError, where one is missing."""
    return tuple(transform.load_assets(files) for transform in transforms)


def _read_config(folder: Path) -> Tree:
    path = folder / CONFIG
    if not path.is_file() and not recover(folder):
        raise FormatError(
            "this is not an artifact folder",
            where=folder,
            received=f"no {CONFIG} in it" if folder.is_dir() else "no such folder",
            allowed="a folder written by `oar export`",
        )
    try:
        tree = parse(read_text(path, SETTINGS, "artifact's config"), str(path), old_scalars=True)
    except ConfigError as error:
        raise damaged_config(path, error) from None
    written_form = tree.value.get("format") if isinstance(tree.value, dict) else None
    if written_form is None or written_form.value != FORMAT:
        raise FormatError(
            "an artifact of another format",
            where=path,
            received=f"format {None if written_form is None else written_form.plain()}",
            allowed=f"format {FORMAT}",
            fix="export it again with this version of Oar",
        )
    try:
        bind(
            Tree({key: child for key, child in tree.value.items() if key in _HINTS}, tree.where),
            ArtifactSettings,
        )
    except ConfigError as error:
        raise damaged_config(path, error) from None
    return tree


def damaged_config(path: Path, error: ConfigError) -> FormatError:
    """The error for a config of an artifact that cannot be bound."""
    return FormatError(
        f"the artifact's config is damaged: {error.problem}",
        where=error.where or path,
        received=error.received,
        allowed=error.allowed or f"{CONFIG} as `oar export` wrote it",
        fix="copy the artifact again or export it anew",
    )


def check_output(folder: Path) -> None:
    """Look whether an artifact can be written to `folder`, before it is made.

    Raises:
        FormatError: it would take the place of something else. DiskError: it cannot be written.
    """
    remove_leftovers(folder.resolve())
    if foreign := _foreign(folder):
        raise FormatError(
            "the output folder holds something that is not part of an artifact",
            where=folder,
            received=", ".join(foreign[:5]),
            allowed="a new folder, an empty one, or an artifact to replace",
            fix="choose another folder, or move these files away",
        )
    check_place(folder)


def _foreign(folder: Path) -> list[str]:
    """What stands at `folder` and would be lost if an artifact took its place, by name."""
    if not folder.is_dir():
        return [folder.name] if folder.exists() else []
    names = sorted({path.name for path in folder.iterdir()} - {OF_THE_FILE_SYSTEM})
    try:
        config = _read_config(folder).plain()
    except FormatError:
        return names  # other toolkits call a file infer_cfg.yml too
    return [name for name in names if name not in {CONFIG, *config["sha256"], *config["stages"]}]


def origin_of(config: Mapping[str, JSON]) -> str:
    """What made the programs of an artifact, and when, by its config."""
    versions = config.get("versions")
    version = versions.get("jax", "?") if isinstance(versions, dict) else "?"
    return f"made by jax {version} on {config.get('made_on', '?')}"


def read_exported(data: bytes, file: Path, origin: str) -> export.Exported:
    """What jax wrote into a file of an artifact, see `origin_of`.

    The format is jax's and MLIR's, whose readers are made for what jax wrote: a program from a stranger has to be
    trusted like code.

    Raises:
        FormatError: this jax cannot read it, or it calls functions of the process, see `check_calls`.
    """
    try:
        exported = export.deserialize(bytearray(data))
        check_calls(exported, data, file)
        return exported
    except FormatError:
        raise
    except Exception as error:  # jax raises many types here: expired, newer than this jax, truncated
        raise FormatError(
            "this jax cannot read the program",
            where=file,
            received=f"{origin}; this is jax {jax_version()}: {type(error).__name__} {str(error)[:300]}",
            allowed="programs of a jax at most six months older and three weeks newer",
            fix="export it again from config and weights with `oar export`",
        ) from error


def _read_program(file: Path, config: dict[str, Any]) -> Program:
    def read(data: bytes) -> export.Exported:
        return read_exported(data, file, origin_of(config))

    data = read_bytes(file, DATASET, "program")
    program = StoredProgram(data, config.get("platforms", ()), read, file)
    if config["versions"].get("jax") != jax_version():
        _ = (
            program.exported
        )  # which may be too old for this jax, and is refused here rather than at the first call
    return program


def _check_files(folder: Path, expected: dict[str, str], verify: bool) -> None:
    for name, sha256 in expected.items():
        there = (folder / name).is_file()
        if not there or (verify and sha256_of(folder / name) != sha256):
            raise FormatError(
                "a file of the artifact is damaged" if there else "a file of the artifact is missing",
                where=folder / name,
                received=f"sha256 {sha256_of(folder / name)}" if there else "no such file",
                allowed=f"sha256 {sha256}",
                fix="copy the artifact again or export it anew",
            )
