"""The base of samples: what a kind of data that is neither image nor text gets from it."""

from dataclasses import dataclass

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.core.sample import Sample


@dataclass(frozen=True, eq=False)
class Sound(Sample):
    wave: np.ndarray
    label: int | None = None

    def __post_init__(self) -> None:
        self.check_ranks({"wave": (1,)})


def test_a_kind_of_data_adds_its_fields() -> None:
    sound = Sound(np.zeros(4, np.float32), id="a.wav")
    changed = sound.replace(label=3)
    assert isinstance(changed, Sound) and (changed.id, changed.label) == ("a.wav", 3)
    assert changed.wave is sound.wave
    assert sound.pack("wave", "label").keys() == {"wave"} and changed.pack("label")["label"] == 3
    with pytest.raises(
        ShapeError, match=r"sample 'a.wav', wave: a field has the wrong rank\n  received: \[2, 2\]"
    ):
        sound.replace(wave=np.zeros((2, 2)))
    with pytest.raises(ShapeError, match=r"Sound\.wave: (.|\n)*allowed: 1 dimensions"):
        Sound(np.zeros((2, 2)))
