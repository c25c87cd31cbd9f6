from __future__ import annotations

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from framework.core import device, process
from framework.core.errors import DeviceError


def test_devices_are_listed_and_found():
    names = device.device_list()
    assert "cpu:0" in names
    for name in names:
        found = device.find_device(name)
        assert f"{name.partition(':')[0]}:{found.id}" == name
    assert device.find_device("CPU") == device.find_device("cpu:0")


@pytest.mark.parametrize("name", ["npu", "cpu:x", "cpu:-1", "cpu:²", ""])
def test_unknown_devices(name: str):
    with pytest.raises(
        DeviceError, match=r"unknown device\n  received: .*\n  allowed: cpu, gpu, gpu:N, tpu or tpu:N"
    ):
        device.find_device(name)


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(
        DeviceError, match=r"unknown device\n  received: 'cpu:99'\n  allowed: cpu:0.*\n.*of the above"
    ):
        device.find_device("cpu:99")
    monkeypatch.setattr(device, "device_list", lambda: ["cpu:0"])
    with pytest.raises(
        DeviceError, match=r"received: 'cuda:99'\n  allowed: cpu:0\n.*pip install \"jax\[cuda13\]\""
    ):
        device.find_device("cuda:99")
    monkeypatch.setattr(device, "device_list", lambda: ["cpu:0", "gpu:0"])
    with pytest.raises(DeviceError, match="choose one of the above"):
        device.find_device("gpu:99")


def test_new_arrays_go_to_the_chosen_device():
    before = jax.config.jax_default_device  # type: ignore[attr-defined]
    last = device.device_list()[-1]
    try:
        chosen = device.set_device(last)
        assert jnp.zeros(2).devices() == {chosen} == {device.default_device()}
        assert device.get_device() == last
        with jax.default_device(jax.devices()[0]):
            assert jnp.zeros(2).devices() == {device.default_device()} == {jax.devices()[0]}
        jax.config.update("jax_default_device", "cpu")  # jax takes a platform, too
        assert jnp.zeros(2).devices() == {device.default_device()}
    finally:
        jax.config.update("jax_default_device", before)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor : 0\nflags\t\t: fpu avx512f amx_bf16\nflags : other\n", {"fpu", "avx512f", "amx_bf16"}),
        ("Features\t: asimd bf16\n", {"asimd", "bf16"}),
        ("", set()),
    ],
)
def test_instruction_sets_of_linux(text: str, expected: set[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device.sys, "platform", "linux")
    monkeypatch.setattr(Path, "read_text", lambda self, **kwargs: text)
    assert device.cpu_features() == expected

    class Cpu:
        platform = "cpu"

    assert device.bfloat16_is_fast(Cpu()) == bool(expected)  # type: ignore[arg-type]
    Cpu.platform = "gpu"
    assert device.bfloat16_is_fast(Cpu())  # type: ignore[arg-type]


def test_instruction_sets_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device.sys, "platform", "darwin")
    monkeypatch.setattr(device.platform, "machine", lambda: "arm64")
    assert device.cpu_features() == {"neon"}
    monkeypatch.setattr(device.sys, "platform", "win32")
    assert device.cpu_features() == frozenset()

    def unreadable(self: Path, **kwargs: object) -> str:
        raise PermissionError

    monkeypatch.setattr(device.sys, "platform", "linux")
    monkeypatch.setattr(Path, "read_text", unreadable)
    assert device.cpu_features() == frozenset()


def test_cpu_count(monkeypatch: pytest.MonkeyPatch):
    assert 1 <= process.cpu_count() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert process.cpu_count() == 1
