import jax.numpy as jnp
import numpy as np

from framework.interop.named_weights import named_weights
from ocr.layers.nrtr import END, START, NRTRConfig, NRTRDecoder, PositionalEncoding


def decoder() -> NRTRDecoder:
    model = NRTRDecoder(NRTRConfig(dims=32, depth=1), num_classes=6)
    table = model.state_dict()["positional_encoding.pe"]
    model.set_state_dict({**named_weights(model.state_shapes()), "positional_encoding.pe": table})
    model.eval()
    return model


def test_positions_by_hand() -> None:
    layer = PositionalEncoding(4).eval()
    out = np.asarray(layer(jnp.zeros((1, 2, 4))))[0]
    np.testing.assert_allclose(
        out, [[0, 1, 0, 1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]], atol=1e-6
    )


def test_a_later_token_does_not_change_an_earlier_logit() -> None:
    model = decoder()
    memory = jnp.asarray(np.random.RandomState(0).standard_normal((1, 3, 32)), jnp.float32)
    one = model(memory, jnp.array([[START, 5, 6, 7, END]]))
    other = model(memory, jnp.array([[START, 5, 8, 7, END]]))
    assert one.shape == (1, 4, 10)
    np.testing.assert_allclose(one[:, :2], other[:, :2], atol=1e-6)
    assert float(jnp.abs(one[:, 2] - other[:, 2]).max()) > 1e-3


def test_memory_of_one_column_and_one_token() -> None:
    assert decoder()(jnp.ones((2, 1, 32)), jnp.array([[START, END]] * 2)).shape == (2, 1, 10)
