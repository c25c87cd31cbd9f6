"""Damaged files into every reader, for a few seconds each; `python -m tests.fuzz --seconds 600` is the long form."""

from __future__ import annotations

import os
import random

import pytest

from tests.fuzz.__main__ import damaged, fuzz
from tests.fuzz.mutations import mutate, mutate_values
from tests.fuzz.readers import READERS

SECONDS = float(os.environ.get("OAR_FUZZ_SECONDS", "4"))


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_no_crash_no_hang_and_no_error_but_ours(name: str) -> None:
    count, failures = fuzz(name, SECONDS, seed=random.Random(name).randrange(10**6))
    assert not failures, failures
    assert count >= 5


def test_a_file_follows_from_its_seed() -> None:
    whole = b'{"a": [1, 2, {"b": "c"}]}' * 3
    assert damaged("npy", whole, 5) == damaged("npy", whole, 5) != damaged("npy", whole, 6)
    files = {mutate(whole, random.Random(seed)) for seed in range(200)}
    assert len(files) > 150 and sum(len(file) < len(whole) for file in files) > 20
    values = {mutate_values(b'{"a": [1, 2, {"b": "c"}]}', random.Random(seed)) for seed in range(200)}
    assert len(values) > 150
