"""What tests/conftest.py promises holds: tests reach no network and do not touch the user's files."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from framework.core.home import home


@pytest.mark.parametrize("host", ["example.org", "192.0.2.1", "2001:db8::1"])
def test_no_network(host: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"wanted to reach '{host}'"):
        socket.create_connection((host, 80), timeout=1)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one, pytest.raises(pytest.fail.Exception, match="wanted to reach"):
        one.connect_ex((host, 80))


def test_this_machine_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_home_is_temporary() -> None:
    assert Path(tempfile.gettempdir()) in home().parents


def test_two_devices() -> None:
    assert len(jax.local_devices(backend="cpu")) == 2


def test_dtypes_are_not_mixed_silently() -> None:
    with pytest.raises(Exception, match="no available implicit dtype"):
        jnp.ones(2, jnp.bfloat16) + jnp.ones(2, jnp.float32)
    assert (jnp.ones((2, 3)) + jnp.ones(3) * 2).dtype == jnp.float32
