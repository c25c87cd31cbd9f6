from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from framework.core import process
from framework.core.compilation import set_process_flags
from framework.core.process import cpu_quota, pause_collection


def test_garbage_is_collected_again_afterwards():
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), pause_collection():
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_process_that_collects_no_garbage_stays_so():
    gc.disable()
    try:
        with pause_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


_PERIOD = {"cpu,cpuacct/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("lines", "files", "cpus"),
    [
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {"cpu.max": "400000 100000"}, 4),  # docker run --cpus 4
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/pod/box", {"pod/cpu.max": "150000 100000", "pod/box/cpu.max": "max 100000"}, 2),
        ("0::/../host", {}, None),
        ("4:cpuset:/\n3:cpu,cpuacct:/docker/1f", {"cpu,cpuacct/cpu.cfs_quota_us": "300000", **_PERIOD}, 3),
        ("3:cpu,cpuacct:/", {"cpu,cpuacct/cpu.cfs_quota_us": "-1", **_PERIOD}, None),
        ("1:cpu:/a\n0::/", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
    ],
)
def test_a_quota_of_a_container_counts(
    lines: str, files: dict[str, str], cpus: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = tmp_path / "groups"
    for name, text in {"../self/cgroup": lines, **files}.items():
        file = groups / name
        groups.mkdir(exist_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="ascii")
    assert cpu_quota(tmp_path, groups) == cpus
    monkeypatch.setattr(process, "cpu_quota", lambda: cpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(3)), raising=False)
    monkeypatch.delenv("NPROC", raising=False)
    set_process_flags()
    fewer = str(cpus) if cpus in (1, 2) else None
    assert process.cpu_count() == min(cpus or 3, 3) and os.environ.get("NPROC") == fewer
