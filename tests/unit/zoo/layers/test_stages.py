import pytest

from framework.core.errors import ConfigError
from zoo.layers.stages import dilate_strides, stage_ends


def test_the_last_block_of_each_stride() -> None:
    assert stage_ends([1, 2, 1, 2, 2, 1]) == {2: 4, 3: 8, 5: 16}
    assert stage_ends([2, 2]) == {0: 4, 1: 8}
    assert stage_ends([1]) == {} and stage_ends([]) == {}


def test_strides_become_dilations() -> None:
    strides = [2, 1, 2, 1, 2, 1, 2, 1]
    assert dilate_strides(strides, 32) == [(s, 1) for s in strides]
    ones = [(2, 1), (1, 1), (2, 1), (1, 1)]
    assert dilate_strides(strides, 16) == [*ones, (2, 1), (1, 1), (1, 1), (1, 2)]
    assert dilate_strides(strides, 8) == [*ones, (1, 1), (1, 2), (1, 2), (1, 4)]


def test_other_output_strides_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"output_stride[\s\S]*received: 4[\s\S]*8, 16, 32"):
        dilate_strides([1], 4)
