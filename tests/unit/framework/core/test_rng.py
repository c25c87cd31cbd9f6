from __future__ import annotations

import jax
import jax.monitoring
import numpy as np
import pytest

from framework.core import rng
from framework.core.errors import TraceError


def _bits(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_seed_repeats_the_stream():
    rng.seed(3)
    first = [_bits(rng.next_key()) for _ in range(3)]
    rng.seed(3)
    assert [_bits(rng.next_key()) for _ in range(3)] == first
    assert len(set(first)) == 3
    rng.seed(4)
    assert _bits(rng.next_key()) != first[0]


def test_a_scope_gives_the_same_keys_each_time_and_leaves_the_stream_alone():
    rng.seed(0)
    expected = _bits(rng.next_key())
    rng.seed(0)
    runs = []
    for _ in range(2):
        with rng.rng_scope(jax.random.key(7)):
            runs.append([_bits(rng.next_key()) for _ in range(2)])
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1]
    assert _bits(rng.next_key()) == expected


def test_scopes_nest():
    with rng.rng_scope(jax.random.key(1)):
        outer = _bits(rng.next_key())
        with rng.rng_scope(jax.random.key(2)):
            inner = _bits(rng.next_key())
        second = _bits(rng.next_key())
    assert inner not in (outer, second) and outer != second


def test_a_key_under_a_trace_without_a_scope_is_an_error():
    with pytest.raises(TraceError, match=r"randomness under a trace(.|\n)*rng_scope(.|\n)*layer.eval\(\)"):
        jax.jit(lambda: jax.random.key_data(rng.next_key()))()


def test_a_scope_inside_a_trace_gives_other_keys_for_other_roots():
    @jax.jit
    def draw(key):
        with rng.rng_scope(key):
            return jax.random.key_data(rng.next_key())

    assert _bits(jax.random.wrap_key_data(draw(jax.random.key(0)))) != _bits(
        jax.random.wrap_key_data(draw(jax.random.key(1)))
    )


def test_is_tracing():
    assert not rng.is_tracing()
    seen = []
    jax.jit(lambda: seen.append(rng.is_tracing()))()
    assert seen == [True]


def test_initializer_generators_count_from_the_seed():
    rng.seed(5)
    first = [rng.next_initializer_rng().standard_normal() for _ in range(2)]
    rng.seed(5)
    assert [rng.next_initializer_rng().standard_normal() for _ in range(2)] == first
    assert first[0] != first[1]


def test_arrays_of_numpys_values_compile_nothing():
    events: list[str] = []

    def note(event: str, duration: float, **kwargs: str | int) -> None:
        events.append(event)

    rng.is_tracing()
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        arrays = [rng.array_of(np.full((3, size), 2.5, np.float32)) for size in range(20, 24)]
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not events and all(float(array.min()) == float(array.max()) == 2.5 for array in arrays)
    jaxpr = jax.make_jaxpr(lambda x: x + rng.array_of(np.ones(3, np.float32)))(np.ones(3, np.float32))
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["add"]  # no device_put in a program
