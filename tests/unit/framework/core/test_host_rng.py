"""framework.core.host_rng: one generator a process, one a scope, and who resets them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import framework
from framework.core.host_rng import host_rng, host_rng_scope
from framework.io import DataLoader, Dataset


def test_seed_starts_the_generator_anew() -> None:
    draws = []
    for seed in (3, 3, 4, -3):
        framework.seed(seed)
        draws.append(host_rng().random(2).tolist())
    assert draws[0] == draws[1] and len({tuple(draw) for draw in draws}) == 3


def test_a_scope_has_a_generator_of_its_own() -> None:
    framework.seed(0)
    expected = host_rng().random(2)
    framework.seed(0)
    first = host_rng().random()
    with host_rng_scope((1, 2)):
        inner = host_rng().random(2)
        with host_rng_scope((1, 2)):
            np.testing.assert_array_equal(host_rng().random(2), inner)
    assert [first, host_rng().random()] == expected.tolist()


class Noise(Dataset):
    def __getitem__(self, index: int) -> np.ndarray:
        return host_rng().random(3)

    def __len__(self) -> int:
        return 6


def test_a_sample_draws_the_same_whatever_the_number_of_workers() -> None:
    def replace_last(sample: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([sample[:2], host_rng().random(1)])

    def draw(workers: int) -> np.ndarray:
        loader = DataLoader(Noise(), transforms=(replace_last,), batch_size=2, num_workers=workers)
        return np.concatenate([np.asarray(batch) for batch in loader])

    batches = [draw(0), draw(3)]
    np.testing.assert_array_equal(*batches)
    assert len(np.unique(batches[0])) == 18


def test_it_loads_no_jax() -> None:
    code = "import sys, framework.core.host_rng; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
