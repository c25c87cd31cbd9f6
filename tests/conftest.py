"""What every test runs under: no network, a home folder of its own, strict jax, two CPU devices, programs kept.

Set through the environment before jax is imported, so that the processes which tests start have it too.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

REPO = Path(__file__).resolve().parents[1]
_HOME = tempfile.mkdtemp(prefix="oar_tests_")

os.environ["OAR_HOME"] = _HOME  # never the user's cache
os.environ["OAR_OFFLINE"] = "1"
# Mixing float32 with bfloat16 or integers must be written out. Ranks may broadcast: biases are added to [N, H, W, C].
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
# Half of the time of a test is XLA's, and most programs run once: they are compiled fast, not to be fast. With
# OAR_TESTS_OPTIMIZED=1 they are compiled as users' are. (Level 0 makes reading text four times as slow, and without the
# emitters it computes wrong low-precision values: jax 0.10.)
_XLA_FLAGS = ["--xla_force_host_platform_device_count=2"]
if os.environ.get("OAR_TESTS_OPTIMIZED") != "1":
    _XLA_FLAGS += [
        "--xla_backend_optimization_level=1",
        "--xla_llvm_disable_expensive_passes=true",
    ]
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (
        0,
        11,
    ):  # 0.11 ends the process at an unknown flag
        _XLA_FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *_XLA_FLAGS]).strip()
# Compiled programs are kept between tests, workers and runs, by what they compute: compiling is half of the time.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oar_tests"
_CACHE_BYTES = 4 << 30
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


# A tenth of a long run went into looking through a million programs and modules for garbage, 0.5 to 5 s each time.
gc.set_threshold(700, 10, 100)


def pytest_configure(config: pytest.Config) -> None:
    # A worker may read what another one is still writing: it then compiles for itself.
    config.addinivalue_line("filterwarnings", "ignore:Error (reading|writing) persistent compilation cache")
    if not hasattr(config, "workerinput"):
        _forget_old_programs()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes of an archive hold the time: workers would collect tests of different names, and none would run."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_unconfigure() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """A worker passes UTF-8 on and ends at anything else: half of a surrogate pair, as in the name of a file that is
    no UTF-8, is written as an escape."""
    return _encodable((yield))


def _encodable(part: object) -> object:
    if isinstance(part, str):
        return part.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(part, dict):
        return {_encodable(key): _encodable(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(map(_encodable, part))
    return part


def _forget_old_programs() -> None:
    """Delete the oldest half of the kept programs where they are too large together."""
    files = sorted((file.stat().st_mtime, file) for file in _CACHE.glob("*-cache"))
    if sum(file.stat().st_size for _, file in files) > _CACHE_BYTES:
        for _, file in files[: len(files) // 2]:
            file.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long each part takes, added up over the workers: a folder, or one below it."""
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folders = report.nodeid.split("::")[0].split("/")[:-1]
                part = "/".join(folders[:3])
                seconds[part] = seconds.get(part, 0.0) + report.duration
    if len(seconds) < 2:
        return
    terminalreporter.section("seconds of each part")
    for part, total in sorted(seconds.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{total:7.0f} {part}")


# -- no network --------------------------------------------------------------------------------------------------------


def _is_here(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def _guard(host: object) -> None:
    if not _is_here(host):
        pytest.fail(f"a test wanted to reach {host!r}: tests run without a network, serve it from 127.0.0.1")


class _Socket(socket.socket):
    def connect(self, address, /):  # type: ignore[no-untyped-def]
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _guard(address[0])
        return super().connect(address)

    def connect_ex(self, address, /):  # type: ignore[no-untyped-def]
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _guard(address[0])
        return super().connect_ex(address)


_getaddrinfo = socket.getaddrinfo


def _guarded_getaddrinfo(host, *args, **kwargs):  # type: ignore[no-untyped-def]
    _guard(host)
    return _getaddrinfo(host, *args, **kwargs)


socket.socket = _Socket  # type: ignore[misc]
socket.getaddrinfo = _guarded_getaddrinfo


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _same_randomness() -> None:
    """Every test draws the same parameters and masks, whichever tests ran before it."""
    if "framework.core.rng" in sys.modules:
        sys.modules["framework.core.rng"].seed(0)


_room = 3 << 30  # bytes that a process may have before it forgets its programs


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    """Compiled programs stay in memory, seven gigabytes by the end; most are used again in the same file only."""
    yield
    global _room
    process = psutil.Process()
    if "jax" in sys.modules and process.memory_info().rss > _room:
        sys.modules["jax"].clear_caches()
        gc.collect()
        _room = max(_room, process.memory_info().rss + (1 << 30))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and weights: `OAR_SHARED`, or `shared` beside the repository; skips without one."""
    folder = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set OAR_SHARED to the folder that holds data and weights")
    return folder


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as in a program of its own; processes of pytest-xdist ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
