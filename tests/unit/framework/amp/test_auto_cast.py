from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import amp, jit, nn
from framework.core import rng
from framework.core.dtypes import Autocast, autocast
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn.functional.autocast import BLACK, WHITE
from framework.nn.functional.lowering import current_scopes

R = np.random.default_rng(0)


def values(*shape: int) -> jax.Array:
    return jnp.asarray(R.standard_normal(shape), jnp.float32)


IMAGE, ROWS, HEADS = values(2, 6, 6, 4), values(3, 4), values(2, 5, 2, 4)
LABEL = jnp.asarray([0, 3, 1])
CLUSTERS = jnp.eye(4, 3), [(jnp.eye(4, 2), jnp.eye(2))], [2, 4]  # head, one cluster, cutoffs
# One call of every operation of the two lists, on float32 inputs.
CALLS = {
    "attention_with_weights": lambda c: F.attention_with_weights(c(HEADS), c(HEADS), c(HEADS))[0],
    "scaled_dot_product_attention": lambda c: F.scaled_dot_product_attention(c(HEADS), c(HEADS), c(HEADS)),
    "linear": lambda c: F.linear(c(ROWS), values(4, 2), values(2)),
    "matmul": lambda c: F.matmul(c(ROWS), values(4, 2)),
    "rnn_cell": lambda c: nn.LSTMCell(4, 4)(c(ROWS))[0],
    "rnn_scan": lambda c: nn.GRU(4, 4)(c(values(2, 3, 4)))[0],
    "conv1d": lambda c: F.conv1d(c(values(2, 6, 4)), values(3, 4, 3), values(3)),
    "conv1d_transpose": lambda c: F.conv1d_transpose(c(values(2, 6, 4)), values(4, 3, 3), values(3)),
    "conv2d": lambda c: F.conv2d(c(IMAGE), values(4, 1, 3, 3), values(4), groups=4),
    "conv2d_transpose": lambda c: F.conv2d_transpose(c(IMAGE), values(4, 3, 2, 2), values(3), stride=2),
    "conv3d": lambda c: F.conv3d(c(values(1, 3, 3, 3, 4)), values(2, 4, 2, 2, 2), values(2)),
    "gumbel_softmax": lambda c: F.gumbel_softmax(c(ROWS), key=jax.random.key(0)),
    "log_sigmoid": lambda c: F.log_sigmoid(c(ROWS)),
    "log_softmax": lambda c: F.log_softmax(c(ROWS)),
    "softmax": lambda c: F.softmax(c(ROWS)),
    "softplus": lambda c: F.softplus(c(ROWS)),
    "cosine_similarity": lambda c: F.cosine_similarity(c(ROWS), c(ROWS)),
    "label_smooth": lambda c: F.label_smooth(c(jnp.eye(4))),
    "normalize": lambda c: F.normalize(c(ROWS)),
    "spectral_norm": lambda c: F.spectral_norm(c(ROWS), values(3), values(4))[0],
    "binary_cross_entropy": lambda c: F.binary_cross_entropy(c(jax.nn.sigmoid(ROWS)), jnp.ones((3, 4))),
    "binary_cross_entropy_with_logits": lambda c: F.binary_cross_entropy_with_logits(
        c(ROWS), jnp.ones((3, 4))
    ),
    "cosine_embedding_loss": lambda c: F.cosine_embedding_loss(c(ROWS), c(ROWS), jnp.asarray([1, -1, 1])),
    "cross_entropy": lambda c: F.cross_entropy(c(ROWS), LABEL),
    "ctc_loss": lambda c: F.ctc_loss(c(values(6, 1, 4)), LABEL[None], jnp.asarray([6]), jnp.asarray([2])),
    "dice_loss": lambda c: F.dice_loss(c(jax.nn.softmax(ROWS)), LABEL[:, None]),
    "kl_div": lambda c: F.kl_div(c(ROWS), jnp.full((3, 4), 0.25)),
    "l1_loss": lambda c: F.l1_loss(c(ROWS), jnp.ones((3, 4))),
    "log_loss": lambda c: F.log_loss(c(jax.nn.sigmoid(ROWS)), jnp.ones((3, 4))),
    "margin_ranking_loss": lambda c: F.margin_ranking_loss(c(ROWS), c(ROWS), jnp.ones((3, 4))),
    "mse_loss": lambda c: F.mse_loss(c(ROWS), jnp.ones((3, 4))),
    "nll_loss": lambda c: F.nll_loss(c(ROWS), LABEL),
    "sigmoid_focal_loss": lambda c: F.sigmoid_focal_loss(c(ROWS), jnp.ones((3, 4))),
    "smooth_l1_loss": lambda c: F.smooth_l1_loss(c(ROWS), jnp.ones((3, 4))),
    "softmax_with_cross_entropy": lambda c: F.softmax_with_cross_entropy(c(ROWS), LABEL[:, None]),
    "square_error_cost": lambda c: F.square_error_cost(c(ROWS), jnp.ones((3, 4))),
    "triplet_margin_loss": lambda c: F.triplet_margin_loss(c(ROWS), c(ROWS + 1), c(ROWS - 1)),
    "conv3d_transpose": lambda c: F.conv3d_transpose(
        c(values(1, 2, 2, 2, 4)), values(4, 3, 2, 2, 2), values(3)
    ),
    "bilinear": lambda c: F.bilinear(c(ROWS), c(ROWS), values(2, 4, 4), values(1, 2)),
    "adaptive_log_softmax": lambda c: F.adaptive_log_softmax(c(ROWS), *CLUSTERS),
    "adaptive_log_softmax_with_loss": lambda c: F.adaptive_log_softmax_with_loss(c(ROWS), LABEL, *CLUSTERS)[
        1
    ],
    "gaussian_nll_loss": lambda c: F.gaussian_nll_loss(c(ROWS), c(ROWS), jnp.ones((3, 1))),
    "hinge_embedding_loss": lambda c: F.hinge_embedding_loss(c(ROWS), jnp.ones((3, 4))),
    "hsigmoid_loss": lambda c: F.hsigmoid_loss(c(ROWS), LABEL, 4, values(3, 4)),
    "local_response_norm": lambda c: F.local_response_norm(c(IMAGE), 3),
    "margin_cross_entropy": lambda c: F.margin_cross_entropy(c(jnp.tanh(ROWS)), LABEL),
    "multi_label_margin_loss": lambda c: F.multi_label_margin_loss(c(ROWS), jnp.full((3, 4), 1)),
    "multi_label_soft_margin_loss": lambda c: F.multi_label_soft_margin_loss(c(ROWS), jnp.ones((3, 4))),
    "multi_margin_loss": lambda c: F.multi_margin_loss(c(ROWS), LABEL),
    "npair_loss": lambda c: F.npair_loss(c(ROWS), c(ROWS), LABEL),
    "pairwise_distance": lambda c: F.pairwise_distance(c(ROWS), c(ROWS + 1)),
    "poisson_nll_loss": lambda c: F.poisson_nll_loss(c(ROWS), jnp.ones((3, 4))),
    "rnnt_loss": lambda c: F.rnnt_loss(
        c(values(1, 5, 3, 4)), LABEL[None, :2], jnp.asarray([5]), jnp.asarray([2])
    ),
    "soft_margin_loss": lambda c: F.soft_margin_loss(c(ROWS), jnp.ones((3, 4))),
    "triplet_margin_with_distance_loss": lambda c: F.triplet_margin_with_distance_loss(
        c(ROWS), c(ROWS + 1), c(ROWS - 1)
    ),
}
FOLLOWING = {
    "relu": lambda x: F.relu(x),
    "gelu": lambda x: F.gelu(x),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "interpolate": lambda x: F.interpolate(x, (9, 9), mode="bilinear"),
    "pad": lambda x: F.pad(x, 1),
    "dropout": lambda x: F.dropout(x, 0.5, key=jax.random.key(0)),
    "layer_norm": lambda x: F.layer_norm(x, 4, jnp.ones(4), jnp.zeros(4)),
    "group_norm": lambda x: F.group_norm(x, 2, weight=jnp.ones(4), bias=jnp.zeros(4)),
    "batch_norm": lambda x: F.batch_norm(x, jnp.zeros(4), jnp.ones(4), jnp.ones(4), jnp.zeros(4), True)[0],
}


def test_the_lists_are_covered():
    assert set(CALLS) == WHITE | BLACK and not WHITE & BLACK
    assert set(dir(F)) >= WHITE | BLACK


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("rnn_cell", "rnn_scan", "ctc_loss")])
def test_white_operations_are_low_and_black_ones_float32(name, dtype):
    for given in ("float32", dtype):
        with amp.auto_cast(dtype=dtype):
            out = CALLS[name](lambda x, given=given: x.astype(given))
        assert out.dtype == (dtype if name in WHITE else jnp.float32), given
        assert np.isfinite(np.asarray(out, np.float32)).all()


@pytest.mark.parametrize("name", ["rnn_cell", "rnn_scan", "ctc_loss"])
def test_white_and_black_scans(name):
    with amp.auto_cast():
        assert CALLS[name](lambda x: x).dtype == (jnp.bfloat16 if name in WHITE else jnp.float32)


@pytest.mark.parametrize("name", FOLLOWING)
def test_the_rest_follows_its_input(name):
    with amp.auto_cast():
        assert FOLLOWING[name](IMAGE).dtype == jnp.float32
        low = FOLLOWING[name](IMAGE.astype(jnp.bfloat16))
    assert low.dtype == jnp.bfloat16
    np.testing.assert_allclose(low.astype(jnp.float32), FOLLOWING[name](IMAGE), atol=0.06)


def test_custom_lists_move_operations():
    with amp.auto_cast(custom_white_list={"relu", "softmax"}, custom_black_list={"matmul"}):
        assert F.relu(ROWS).dtype == jnp.bfloat16 and F.softmax(ROWS).dtype == jnp.bfloat16
        assert F.matmul(ROWS.astype(jnp.bfloat16), values(4, 2).astype(jnp.bfloat16)).dtype == jnp.float32
        assert F.linear(ROWS, values(4, 2)).dtype == jnp.bfloat16


def test_running_statistics_and_masks_keep_their_type():
    with amp.auto_cast(custom_white_list={"batch_norm"}, dtype="float16"):
        y, mean, _ = F.batch_norm(IMAGE, jnp.zeros(4), running_var=jnp.ones(4), training=True)
        hidden = jnp.where(
            jnp.arange(5) < 5, -1e9, 0.0
        )  # all hidden: float16 has no -1e9, and -inf gives NaN
        out = F.scaled_dot_product_attention(HEADS, HEADS, HEADS, jnp.broadcast_to(hidden, (2, 2, 5, 5)))
    assert y.dtype == jnp.float16 and mean.dtype == jnp.float32
    assert np.isfinite(np.asarray(out, np.float32)).all()


def test_the_scope_nests_switches_off_and_ends():
    assert autocast() is None
    with amp.auto_cast(level="O2"):
        with amp.auto_cast(enable=False):
            assert F.matmul(ROWS, values(4, 2)).dtype == jnp.float32
        policy = autocast()
        assert policy is not None and policy.level == "O2"
    assert autocast() is None and F.matmul(ROWS, values(4, 2)).dtype == jnp.float32

    @amp.auto_cast()
    def step(x):
        return F.matmul(x, values(4, 2))

    assert step(ROWS).dtype == step(ROWS).dtype == jnp.bfloat16


def test_integers_and_other_arguments_are_left_alone():
    with amp.auto_cast(custom_white_list={"embedding", "pad"}):
        assert F.embedding(LABEL % len(ROWS), ROWS).dtype == jnp.bfloat16
        assert F.pad(IMAGE, [1, 1, 0, 0], mode="constant", value=2.0).dtype == jnp.bfloat16
        assert F.pad(jnp.ones((1, 2, 2, 1), jnp.int32), 1).dtype == jnp.int32


def test_o2_reads_parameters_in_low_precision_but_for_norms():
    net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.utils.weight_norm(nn.Linear(4, 4)))
    with amp.auto_cast(level="O2"):
        assert net[0].weight.dtype == jnp.bfloat16 and net[1].weight.dtype == jnp.float32
        assert net[2].weight_v.dtype == jnp.float32 and net(ROWS).dtype == jnp.bfloat16
        assert {v.dtype for v in net.state_dict().values()} == {jnp.dtype("float32")}
        assert nn.ParameterList([nn.Linear(2, 2)._parameters["weight"]])[0].dtype == jnp.bfloat16
        assert nn.Embedding(4, 2)(LABEL).dtype == jnp.bfloat16
    with amp.auto_cast(level="O1"):
        assert net[0].weight.dtype == jnp.float32 and nn.Embedding(4, 2)(LABEL).dtype == jnp.float32
    assert net[0].weight.dtype == jnp.float32


class Block(nn.Layer):
    """Convolution, BatchNorm, attention and a residual: what both kinds of network are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        x = self.encoder(x.reshape(x.shape[0], -1, 8))
        return self.head(x.mean(1))


X, Y = values(4, 5, 5, 3), jnp.asarray([0, 1, 2, 3])


@functools.cache
def loss_and_grads(level=None, dtype="bfloat16"):
    rng.seed(3)
    layer = Block()
    run = nn.value_and_grad(layer, lambda m, x, y: F.cross_entropy(m(x), y))
    with amp.auto_cast(enable=level is not None, level=level or "O1", dtype=dtype):
        loss, grads = run(X, Y)
    return loss, grads, dict(layer.named_buffers())


@pytest.mark.parametrize(("level", "dtype"), [("O1", "bfloat16"), ("O2", "bfloat16"), ("O2", "float16")])
def test_gradients_are_float32_and_close(level, dtype):
    reference, expected, statistics = loss_and_grads()
    loss, grads, buffers = loss_and_grads(level, dtype)
    assert loss.dtype == jnp.float32 and abs(float(loss - reference)) < 0.02
    assert float(loss) != float(reference)  # it did run in low precision
    for name, grad in grads.items():
        assert grad.dtype == jnp.float32
        scale = max(float(jnp.abs(expected[name]).max()), 0.02)  # a bias before BatchNorm has gradient 0
        assert float(jnp.abs(grad - expected[name]).max()) < 0.08 * scale, name
    for name, buffer in buffers.items():
        assert buffer.dtype == jnp.float32
        np.testing.assert_allclose(buffer, statistics[name], atol=0.01)


def test_against_torch_in_float32():
    torch = pytest.importorskip("torch", reason="the reference of this test")
    weight, bias = values(8, 3, 3, 3) * 0.2, values(8)
    gamma, beta = values(8) + 2, values(8)

    def ours(weight, gamma):
        y = F.conv2d(X, weight, bias, 2, 1)
        y = F.batch_norm(y, jnp.zeros(8), jnp.ones(8), gamma, beta, True)[0]
        return F.cross_entropy(F.relu(y).mean((1, 2)), Y)

    def theirs():
        f = torch.nn.functional
        w, g = (torch.tensor(np.asarray(a), requires_grad=True) for a in (weight, gamma))
        x, b, s = (torch.tensor(np.asarray(a)) for a in (X.transpose(0, 3, 1, 2), bias, beta))
        y = f.batch_norm(f.conv2d(x, w, b, 2, 1), torch.zeros(8), torch.ones(8), g, s, True)
        loss = f.cross_entropy(f.relu(y).mean((2, 3)), torch.tensor(np.asarray(Y), dtype=torch.long))
        loss.backward()
        return loss.item(), w.grad.numpy(), g.grad.numpy()

    expected, by_weight, by_gamma = theirs()
    for level, tolerance in ((None, 1e-5), ("O1", 0.03), ("O2", 0.03)):
        with amp.auto_cast(enable=level is not None, level=level or "O1"):
            loss, grads = jax.value_and_grad(ours, (0, 1))(weight, gamma)
        assert abs(float(loss) - expected) < tolerance
        np.testing.assert_allclose(grads[0], by_weight, atol=tolerance * np.abs(by_weight).max())
        np.testing.assert_allclose(grads[1], by_gamma, atol=tolerance * np.abs(by_gamma).max())


def test_compiled_programs_are_kept_apart():
    static = jit.to_static(nn.Linear(4, 2).eval())
    function = jit.to_static(lambda x: F.matmul(x, x, transpose_y=True))
    kinds = []
    for context in (amp.auto_cast(enable=False), amp.auto_cast(), amp.auto_cast(dtype="float16")):
        with context:
            kinds.append((static(ROWS).dtype, function(ROWS).dtype))
    assert [str(a) for a, _ in kinds] == ["float32", "bfloat16", "float16"]
    assert all(a == b for a, b in kinds) and static(ROWS).dtype == jnp.float32
    with amp.auto_cast(level="O2"):
        inside = current_scopes()
    assert (
        inside[1] == Autocast("O2", "bfloat16")
        and current_scopes()[1] is None
        and len({inside, current_scopes()}) == 2
    )


def test_eager_is_static():
    layer = Block().eval()
    with amp.auto_cast(level="O2"):
        np.testing.assert_allclose(
            layer(X).astype(jnp.float32), jit.to_static(layer)(X).astype(jnp.float32), atol=0.03
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "O3"}, r"auto_cast: unknown level(.|\n)*'O3'"),
        ({"dtype": "int8"}, r"unknown low precision(.|\n)*'int8'(.|\n)*GradScaler"),
        ({"custom_white_list": {"conv2"}}, r"custom_white_list: unknown operation(.|\n)*conv2d"),
        ({"custom_black_list": {"zzzz"}}, r"custom_black_list: unknown operation(.|\n)*'zzzz'"),
        ({"custom_black_list": "relu"}, r"custom_black_list: a list of operations is not one string"),
        ({"custom_white_list": ["relu"], "custom_black_list": ["relu"]}, r"both lists(.|\n)*relu"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ConfigError, match=message), amp.auto_cast(**arguments):
        pass


def test_what_is_asked_of_auto_cast():
    assert amp.is_bfloat16_supported() and amp.is_float16_supported("cpu")
    assert not amp.is_autocast_enabled() and amp.get_autocast_dtype() == "float32"
    with amp.auto_cast(dtype="float16"):
        assert amp.is_autocast_enabled() and amp.get_autocast_gpu_dtype() == "float16"
