import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from ocr.models.parseq import PARSeq, PARSeqConfig
from ocr.text.characters import CharacterSet
from ocr.text.postprocess import ctc_decode


@pytest.fixture(scope="module")
def tiny() -> PARSeq:
    model = PARSeq(PARSeqConfig("parseq_tiny", num_classes=6, max_text_length=4)).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    return model


def test_reading_keeps_equal_neighbours_apart_and_stops_at_the_end(
    tiny: PARSeq, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = jnp.array([[1, 1, 2, 3, 5], [4, 0, 4, 4, 0], [0, 1, 1, 1, 1]])
    logits = 2.0 * jax.nn.one_hot(best, 6)
    monkeypatch.setattr(PARSeq, "forward", lambda self, x: logits)
    indices, probabilities = tiny.read(jnp.zeros((3, 32, 128, 3)))
    assert indices.dtype == jnp.int32
    assert indices.tolist() == [[1, 0, 1, 0, 2, 0, 3, 0], [4, 0, 0, 0, 0, 0, 0, 0], [0] * 8]
    certain = float(np.exp(2) / (np.exp(2) + 5))
    np.testing.assert_allclose(probabilities[:, ::2], np.full((3, 4), certain), rtol=1e-6)
    characters = CharacterSet.from_symbols("abcde", use_space_char=False)
    texts = ctc_decode(np.asarray(indices), np.asarray(probabilities), characters)
    assert [text.text for text in texts] == ["aabc", "d", ""]
    assert texts[0].score == pytest.approx(certain) and texts[2].score == 0


@pytest.mark.parametrize("shape", [(1, 32, 100, 3), (1, 3, 32, 128), (1, 48, 128, 3)])
def test_words_of_one_size(tiny: PARSeq, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"words of one size[\s\S]*32 x 128"):
        tiny(np.zeros(shape, np.float32))
