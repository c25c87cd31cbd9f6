"""Compiled programs on disk: a second start hands them to the runtime and neither lowers nor compiles anything.

A file is machine code and runs as what it says, so none is used that this user did not write: each is bound to its name
and to a secret of the user's own (HMAC-SHA256, `OAR_HOME`/compiled/key, readable by the owner alone). A file that was
changed, cut off or brought from elsewhere fails that check, is never handed over, and is made again. Nothing is
unpickled: a file holds the runtime's own bytes; names of inputs and outputs are JSON.

OAR_COMPILATION_CACHE=off turns it off. What the disk refuses is said once and costs time, never a prediction.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import json
import logging
import os
import platform
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.core.compilation import cache_folder
from framework.core.device import Device, cpu_features
from framework.core.errors import HubError
from framework.core.lazy import LazyModule
from framework.core.process import cpu_count
from framework.core.secret import read_secret, secret_file, tag_of
from framework.core.types import JSON

if TYPE_CHECKING:
    import jax
    from jax import monitoring
else:
    jax = LazyModule("jax")
    monitoring = LazyModule("jax.monitoring")

log = logging.getLogger("oar")
KEPT_BYTES = 512 << 20
"""All files together; those that were used longest ago go first. A program takes some 300 KB."""
_MAGIC = b"oar-xla1"
_TAG = hashlib.sha256().digest_size
_STALE_SECONDS = 3600.0  # a temporary file of a process that was killed


class ExecutableStore:
    """Bytes by key in one folder, each bound to its key by `secret`. Several processes may share the folder.

    Args:
        limit: Bytes of all files together.
    """

    def __init__(self, folder: Path, secret: bytes, limit: int = KEPT_BYTES) -> None:
        self.folder, self._secret, self.limit = folder, secret, limit
        self._failed = False

    def path(self, key: str) -> Path:
        """Where the bytes of a key are."""
        return self.folder / f"{key}.xla"

    def load(self, key: str) -> bytes | None:
        """The bytes kept under a key; None where there are none, or none that this user wrote there."""
        path = self.path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + _TAG
        if data[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(
            data[len(_MAGIC) : head], self._tag(key, data[head:])
        ):
            log.warning("a kept program was changed or is damaged, it is made again: %s", path)
            self.forget(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: `_prune` takes those first that were not used for long
        return zlib.decompress(data[head:])

    def save(self, key: str, data: bytes) -> None:
        """Keep bytes under a key. Where the disk does not take them, it is said once."""
        packed = zlib.compress(data, 1)
        work = self.folder / f".{secrets.token_hex(8)}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                work.write_bytes(_MAGIC + self._tag(key, packed) + packed)
                os.replace(work, self.path(key))
            finally:
                work.unlink(missing_ok=True)
            self._prune()
        except OSError as error:
            if not self._failed:
                self._failed = True
                log.warning("compiled programs are not kept: %s", error)

    def forget(self, key: str) -> None:
        """Delete what is kept under a key."""
        with contextlib.suppress(OSError):
            self.path(key).unlink()

    def _tag(self, key: str, packed: bytes) -> bytes:
        return tag_of(self._secret, key, packed)

    def _prune(self) -> None:
        """Delete what was used longest ago, beyond the limit, and what killed processes left."""
        files, now = [], time.time()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process prunes too
                    about = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(".xla"):
                        files.append((about.st_mtime, about.st_size, entry.path))
                    elif entry.name.endswith(".tmp") and now - about.st_mtime > _STALE_SECONDS:
                        os.unlink(entry.path)
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.limit:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


@functools.lru_cache(maxsize=4)
def _store(folder: Path, file: Path) -> ExecutableStore | None:
    try:
        return ExecutableStore(folder, read_secret(file))
    except OSError as error:
        log.warning("compiled programs are not kept: %s", error)
        return None


def open_store() -> ExecutableStore | None:
    """The store of this user and this kind of CPU; None where it is turned off or there is no place for it."""
    try:
        folder = cache_folder()
        if folder is None:
            return None
        return _store(folder / "executables", secret_file())
    except HubError as error:
        log.warning("compiled programs are not kept: %s", error)
        return None


def executable_key(
    digest: str,
    weights: Mapping[str, jax.Array],
    shapes: Mapping[str, tuple[int, ...]],
    options: Mapping[str, str | bool],
    device: Device,
) -> str:
    """Names the executable of a program for these shapes: changes with everything that it depends on.

    Args:
        digest: Of the program's bytes, which its precision is part of.
        weights: Arrays by name; their shapes and dtypes count, their numbers are arguments.
        shapes: Of the inputs.
        options: XLA's compile options.
    """
    about = {
        "program": digest,
        "weights": sorted((name, list(w.shape), str(w.dtype)) for name, w in weights.items()),
        "inputs": sorted((name, list(shape)) for name, shape in shapes.items()),
        "options": sorted((name, str(value)) for name, value in options.items()),
        "device": [device.platform, device.device_kind],
        **_machine(device),
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _machine(device: Device) -> dict[str, JSON]:
    """What else decides about the code that XLA makes."""
    return {
        "jax": [jax.__version__, metadata.version("jaxlib"), device.client.platform_version],
        "cpu": [platform.machine(), platform.processor(), cpu_count(), *sorted(cpu_features())],
        "flags": os.environ.get("XLA_FLAGS", ""),
    }


def signature_key(digest: str) -> str:
    """Names the signature of a program: its inputs and outputs."""
    return hashlib.sha256(f"signature {digest}".encode()).hexdigest()


class BrokenExecutable(RuntimeError):
    """A kept program that the runtime cannot load or run. It is made again."""


class Executable:
    """A compiled program that was kept, called as jax's own: `(weights, inputs) -> outputs`, flat dicts by name.

    The first call waits for its outputs: what the runtime finds missing in a program it says only then.

    Args:
        data: What `compile_and_dump` gave for the same program and kind of device.
        outputs: Names of the outputs.

    Raises:
        BrokenExecutable: this runtime cannot read it; or, in the first call, cannot run it.
    """

    def __init__(self, data: bytes, device: Device, outputs: Mapping[str, object]) -> None:
        try:
            from jaxlib import xla_client  # here: another engine needs no jax

            devices = xla_client.DeviceList((device,))
            self._loaded = device.client.deserialize_executable(data, executable_devices=devices)
        except (
            RuntimeError,
            TypeError,
            AttributeError,
        ) as error:  # the latter two: of another jaxlib's functions
            raise BrokenExecutable(str(error)) from error
        self._outputs = sorted(outputs)  # the order in which jax hands a dict over
        self._proved = False

    def __call__(
        self, weights: Mapping[str, jax.Array], inputs: Mapping[str, jax.Array]
    ) -> dict[str, jax.Array]:
        arguments = [values[name] for values in (weights, inputs) for name in sorted(values)]
        if self._proved:
            return self._run(arguments)
        try:
            outputs = jax.block_until_ready(self._run(arguments))
        except (RuntimeError, TypeError, AttributeError, ValueError) as error:
            raise BrokenExecutable(str(error)) from error
        self._proved = True
        return outputs

    def _run(self, arguments: list[jax.Array]) -> dict[str, jax.Array]:
        results = self._loaded.execute_sharded(arguments).disassemble_into_single_device_arrays()
        return {name: shards[0] for name, shards in zip(self._outputs, results, strict=True)}


_thread = threading.local()  # .hits: programs of this thread that came from jax's own cache


def _count_hits(event: str, **_: object) -> None:
    if event == "/jax/compilation_cache/cache_hits":
        _thread.hits = getattr(_thread, "hits", 0) + 1


@functools.cache
def _listen() -> None:
    monitoring.register_event_listener(_count_hits)


def compile_and_dump(build: Callable[[], Any]) -> tuple[Any, bytes | None]:
    """What `build` compiles, a jax.stages.Compiled with `keep_unused`, and its bytes; None where it has no such form.

    A program that jax itself read from its cache has none: its machine code cannot be written a second time.
    """
    _listen()
    hits = getattr(_thread, "hits", 0)
    compiled = build()
    if getattr(_thread, "hits", 0) > hits:
        return compiled, None
    try:
        return compiled, compiled.runtime_executable().serialize()
    except (RuntimeError, AttributeError):  # a platform that cannot
        return compiled, None
