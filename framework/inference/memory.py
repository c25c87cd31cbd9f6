"""What the process does with freed memory: keep it for the next call, or hand it back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_keeping = False  # keep_memory took effect


def keep_memory() -> bool:
    """Tell the C library to reuse large blocks: a call of a network then touches no fresh pages.

    XLA allocates its working memory anew for every call, and above 32 MB glibc maps and unmaps it each time: a
    detector at 960x640 spends 18 % of its time on 15,000 page faults. The setting is for the whole process and memory
    once used is not returned to the system, so a library call does not do it: `oar infer` and the benchmarks do.
    Call it before the first model is made. Returns whether it took effect; without glibc it does nothing.
    """
    global _keeping
    _keeping = _set_malloc((_M_MMAP_THRESHOLD, 1 << 30), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1))
    return _keeping


def share_arena() -> bool:
    """Let threads that come after this take memory from one arena of glibc; each takes it from its own otherwise.

    What cannot be handed back of an arena, its top and the pieces between what stays, then comes once and not for each
    thread: a process that reads pages of many sizes stays some 100 MB smaller. The setting is for the whole process, so
    a library call does not make it: call it before the first model, where memory counts more than locks. Nothing is set
    where MALLOC_ARENA_MAX or GLIBC_TUNABLES says how many arenas there are. Returns whether it took effect; without
    glibc it does nothing.
    """
    is_set = "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    return not is_set and _set_malloc((_M_ARENA_MAX, 1))


def _set_malloc(*settings: tuple[int, int]) -> bool:
    """Whether glibc is there and takes all of the settings."""
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all([bool(mallopt(name, value)) for name, value in settings])


def release_memory() -> None:
    """Hand freed memory back to the system: compiling a program leaves twice its size behind, in pieces.

    Without glibc it does nothing.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def release_after_item() -> None:
    """As `release_memory`, after each page of many: 3 ms, and resident memory does not creep up with their sizes.

    Does nothing after `keep_memory`, which wants freed memory for the next page.
    """
    if not _keeping:
        release_memory()
