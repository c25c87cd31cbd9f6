from __future__ import annotations

import gc

import pytest

from framework.core.process import pause_collection


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
