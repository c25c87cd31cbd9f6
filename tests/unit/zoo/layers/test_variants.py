import pytest

from framework.core.errors import ConfigError
from zoo.layers.variants import check_variant


def test_known_and_unknown_variants() -> None:
    check_variant("Net", "small", ["tiny", "small"])
    with pytest.raises(ConfigError) as error:
        check_variant("Net", "smal", iter(["tiny", "small"]))
    assert str(error.value) == (
        "unknown variant of Net\n  received: 'smal'\n  allowed: tiny, small\n  what to do: did you mean 'small'?"
    )
    with pytest.raises(ConfigError, match=r"allowed: tiny$"):
        check_variant("Net", "x", ["tiny"])
