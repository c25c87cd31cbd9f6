"""How programs are compiled, in training and in inference: XLA's options for a device, and the cache on disk."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import stat
import threading
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from framework.core.device import Device, cpu_features
from framework.core.errors import HubError
from framework.core.home import home
from framework.core.lazy import LazyModule
from framework.core.process import cpu_limit
from framework.core.process_state import state
from framework.core.secret import read_secret, secret_file
from framework.core.signed_cache import bind_entries

if TYPE_CHECKING:
    import jax
    from jax.experimental.compilation_cache import compilation_cache
else:
    jax = LazyModule("jax")
    compilation_cache = LazyModule("jax.experimental.compilation_cache.compilation_cache")

log = logging.getLogger("oar")
CompileOptions: TypeAlias = dict[str, Any]  # jax's type of options has no int
# Compile options of the CPU backend: convolutions leave the YNN library for Eigen (detector at 640: 100 to 89 ms),
# dots stay in it (bf16 dots run at twice the float32 speed there). Vectors of 512 bits stay off: with
# `xla_cpu_prefer_vector_width: 512` jaxlib 0.10 computes arctan of 64 and more numbers wrongly, by up to 1.37.
_YNN, _SINGLE_DOTS = "xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
CPU_COMPILE_OPTIONS: dict[str, str | bool] = {_YNN: _SINGLE_DOTS}
_YNN_SINCE = (0, 9, 2)  # of jaxlib; up to 0.12, which is the newest that is allowed, all have the option
# For programs that recompute: the CPU backend drops optimisation barriers before it schedules, and a block that is to
# run again is then merged with its first run (8 wide blocks: 9.5 MB of temporaries either way; 2.2 with this).
CPU_RECOMPUTE_OPTIONS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cse_barrier_expander"}

_cache_lock = threading.Lock()


def enable_compilation_cache(folder: str | Path | None = None) -> Path | None:
    """Keep compiled programs on disk, so that a second start does not compile again. On by default for engines.

    The folder is JAX_COMPILATION_CACHE_DIR, or `OAR_HOME`/compiled/<this kind of CPU>; OAR_COMPILATION_CACHE=off
    turns it off. It is trusted like code: its files are bound to the user's secret (but those of
    JAX_COMPILATION_CACHE_DIR), it is made for its owner alone, and a folder that is another user's, or that others may
    write into, is not used. A machine without a place for it runs without it, with a warning.
    """
    with _cache_lock:
        if _turned_off():
            return None
        if folder is not None:
            state.cache_folder = Path(folder)
        current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        if folder is None and (state.cache_ready or current):
            state.cache_ready = True
            return Path(current) if current else None
        try:
            folder = _make_folder(folder)
            bind_entries(str(folder), read_secret(secret_file()))
        except (OSError, HubError) as error:
            log.warning("compiled programs are not kept: %s", error)
            state.cache_ready = True
            return None
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()  # jax would stay with the folder that it used first
        state.cache_ready = True
        return folder


def cache_folder() -> Path | None:
    """Where engines keep compiled programs: what `enable_compilation_cache` was given, else a folder in `OAR_HOME` for
    this kind of CPU; None where that is turned off. Nothing is made here.

    Raises:
        HubError: there is no home folder.
    """
    if _turned_off():
        return None
    return state.cache_folder or _own_folder()


def set_process_flags() -> None:
    """Give XLA the option of the CPU for what is compiled without `compile_options`, too: eager operations, optimisers,
    a user's own jax.jit.

    With YNN's fused products jaxlib 0.10.2 computes wrong values (32,769 rows and more times a small matrix, squared
    and summed: jax#39103), and 0.10.2 and 0.11.0 end the process (sums of products of seven axes: jax#39257). XLA
    reads its flags once, before the first operation of the process; a choice that is already there stays. So it does
    with NPROC, its name for the number of threads: by itself it knows nothing of a container's quota.
    """
    limit = cpu_limit()
    if limit is not None:
        os.environ.setdefault("NPROC", str(limit))
    flags = os.environ.get("XLA_FLAGS", "")
    if _YNN not in flags and _has_ynn():
        os.environ["XLA_FLAGS"] = f"{flags} --{_YNN}={_SINGLE_DOTS}".strip()


@functools.cache
def _has_ynn() -> bool:
    """Whether this jaxlib has the option: it ends the process at a flag that it has not."""
    return tuple(map(int, re.findall(r"\d+", metadata.version("jaxlib"))[:3])) >= _YNN_SINCE


def quick_compile_options() -> CompileOptions:
    """Options of the CPU for programs that run once, whose values are compared: half of the time of a comparison is
    XLA's."""
    options: CompileOptions = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        **_cpu_options(),
    }
    return _without_emitters(options)


def operation_compile_options(device: Device) -> CompileOptions:
    """Options for programs of one operation each, of which the first step of eager training compiles hundreds.

    Without XLA's emitters of fusions and its vectoriser's third level the CPU's compiler takes .3 to .65 of the time
    (convolution with gradients 200 -> 53 ms, exp 47 -> 20, add 27 -> 17), and an operation alone runs as fast: there
    is little in it to fuse. Whole training steps keep them. In one part, since each of the 32 into which XLA divides
    a program for its threads has a price of its own (a seventh of all), and another program is compiled beside it.
    """
    options: CompileOptions = dict(compile_options(device))
    if device.platform != "cpu":
        return options
    return _without_emitters({**options, "xla_backend_optimization_level": 1}, split_count=1)


def _without_emitters(options: CompileOptions, split_count: int | None = None) -> CompileOptions:
    """jax 0.11 has no emitters to turn off, and ends the process where an option is unknown. `split_count`: in how many
    parts XLA divides a program for its threads."""
    if jax.__version_info__ >= (0, 11):
        return options
    divided = {} if split_count is None else {"xla_cpu_parallel_codegen_split_count": split_count}
    return {**options, **divided, "xla_cpu_use_fusion_emitters": False}


def jax_version() -> str:
    """The version of the jax that is installed, which is not imported for it."""
    return metadata.version("jax")


def _turned_off() -> bool:
    return os.environ.get("OAR_COMPILATION_CACHE", "").lower() in ("off", "0", "false")


def _own_folder() -> Path:
    kind = hashlib.sha256(" ".join(sorted(cpu_features())).encode()).hexdigest()[:12]
    return home() / "compiled" / kind


def _make_folder(folder: str | Path | None) -> Path:
    is_ours = folder is None
    folder = _own_folder() if folder is None else Path(folder)
    make_private_folder(folder, home() if is_ours else folder)
    return folder


def make_private_folder(folder: Path, top: Path) -> None:
    """Make a folder whose files run as code, for its owner alone, with all folders below `top` on the way to it.

    Raises:
        PermissionError: it, or one of those up to `top`, is another user's or may be written by others, who could put
            programs there. OSError: it cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True, mode=0o700 if one.is_relative_to(top) else 0o777)
    if os.name != "posix":
        return
    for one in (folder, *folder.parents):
        about = one.stat()
        if about.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(about.st_mode) & 0o022:
            raise PermissionError(
                f"{one} belongs to another user or others may write into it: programs in it would run as yours; "
                f"chmod go-w {one}, or set OAR_HOME to a folder of your own"
            )
        if one == top:
            return


def compile_options(device: Device) -> dict[str, str | bool]:
    """XLA options for programs on this device."""
    set_process_flags()
    return _cpu_options() if device.platform == "cpu" else {}


def _cpu_options() -> dict[str, str | bool]:
    return dict(CPU_COMPILE_OPTIONS) if _has_ynn() else {}
