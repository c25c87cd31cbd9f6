from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional.losses import LabelError

RNG = np.random.default_rng(0)
LOGITS = jnp.asarray(RNG.standard_normal((4, 3)), jnp.float32)
LABEL = jnp.array([0, 2, 1, 2])


def test_layers_are_their_functions():
    weight = jnp.array([1.0, 2.0, 3.0])
    p, y = jax.nn.sigmoid(LOGITS), jnp.asarray(RNG.integers(0, 2, (4, 3)), jnp.float32)
    signs = jnp.array([1, -1, 1, -1])
    first, second = LOGITS[:, 0], LOGITS[:, 1]
    cases = [
        (nn.CrossEntropyLoss(weight), (LOGITS, LABEL), F.cross_entropy(LOGITS, LABEL, weight)),
        (
            nn.NLLLoss(weight, reduction="sum"),
            (LOGITS, LABEL),
            F.nll_loss(LOGITS, LABEL, weight, reduction="sum"),
        ),
        (nn.MSELoss("sum"), (LOGITS, y), F.mse_loss(LOGITS, y, "sum")),
        (nn.L1Loss("none"), (LOGITS, y), F.l1_loss(LOGITS, y, "none")),
        (nn.SmoothL1Loss(delta=0.5), (LOGITS, y), F.smooth_l1_loss(LOGITS, y, delta=0.5)),
        (nn.BCELoss(weight), (p, y), F.binary_cross_entropy(p, y, weight)),
        (
            nn.BCEWithLogitsLoss(pos_weight=weight),
            (LOGITS, y),
            F.binary_cross_entropy_with_logits(LOGITS, y, pos_weight=weight),
        ),
        (nn.KLDivLoss("batchmean"), (LOGITS, p), F.kl_div(LOGITS, p, "batchmean")),
        (nn.MarginRankingLoss(0.2), (first, second, signs), F.margin_ranking_loss(first, second, signs, 0.2)),
        (nn.TripletMarginLoss(0.5), (LOGITS, p, y), F.triplet_margin_loss(LOGITS, p, y, 0.5)),
        (nn.CosineEmbeddingLoss(0.3), (LOGITS, p, signs), F.cosine_embedding_loss(LOGITS, p, signs, 0.3)),
    ]
    for layer, inputs, expected in cases:
        np.testing.assert_array_equal(layer(*inputs), expected)
        assert layer.state_dict() == {}  # class weights are not saved, as in Paddle
    assert repr(nn.MSELoss("sum")) == "MSELoss(reduction=sum)"


def test_cross_entropy_by_hand():
    even = jnp.zeros((2, 4))
    assert float(F.cross_entropy(even, jnp.array([0, 3]))) == pytest.approx(np.log(4))
    assert F.cross_entropy(even, jnp.array([[0], [3]]), reduction="none").shape == (2, 1)
    assert F.cross_entropy(even, jnp.array([0, 3]), reduction="none").shape == (2,)
    sharp = jnp.array([[1000.0, 0.0]])
    assert float(F.cross_entropy(sharp, jnp.array([1]))) == 1000.0
    half = jnp.array([[0.5, 0.5]])
    assert float(F.cross_entropy(half, half, soft_label=True, use_softmax=False)) == pytest.approx(np.log(2))


def test_a_batch_without_any_counted_label_costs_nothing():
    loss, grad = jax.value_and_grad(lambda x: F.cross_entropy(x, jnp.full(4, 255), ignore_index=255))(LOGITS)
    assert loss == 0 and np.abs(grad).max() == 0
    assert F.cross_entropy(jnp.zeros((0, 3)), jnp.zeros(0, jnp.int32)) == 0


def test_ignored_labels_do_not_count_with_smoothing_either():
    label = jnp.array([0, 255, 1, 255])
    kept = F.cross_entropy(LOGITS[::2], label[::2], label_smoothing=0.1)
    assert float(F.cross_entropy(LOGITS, label, ignore_index=255, label_smoothing=0.1)) == pytest.approx(
        float(kept)
    )


def test_soft_and_hard_labels_agree():
    one_hot = F.one_hot(LABEL, 3)
    for options in ({}, {"label_smoothing": 0.2}, {"weight": jnp.array([0.5, 1.0, 2.0])}):
        hard = F.cross_entropy(LOGITS, LABEL, reduction="sum", **options)
        assert float(
            F.cross_entropy(LOGITS, one_hot, reduction="sum", soft_label=True, **options)
        ) == pytest.approx(float(hard), rel=1e-6)


def test_the_class_axis_can_be_elsewhere():
    images = jnp.asarray(RNG.standard_normal((2, 3, 4, 5)), jnp.float32)
    label = jnp.asarray(RNG.integers(0, 3, (2, 4, 5)))
    moved = F.cross_entropy(jnp.moveaxis(images, 1, -1), label)
    assert float(F.cross_entropy(images, label, axis=1)) == pytest.approx(float(moved))
    assert F.softmax_with_cross_entropy(images, label[:, None], axis=1).shape == (2, 1, 4, 5)
    soft = F.softmax(images, 1)
    assert F.cross_entropy(images, soft, soft_label=True, axis=1, reduction="none").shape == (2, 1, 4, 5)


def test_softmax_with_cross_entropy_returns_the_softmax_on_request():
    loss, softmax = F.softmax_with_cross_entropy(LOGITS, LABEL[:, None], return_softmax=True)
    np.testing.assert_allclose(
        loss[:, 0], -np.log(np.asarray(softmax)[np.arange(4), np.asarray(LABEL)]), rtol=1e-5
    )
    assert F.softmax_with_cross_entropy(LOGITS, LABEL).shape == (4, 1)


def test_pos_weight_multiplies_the_positive_term():
    # Paddle 2.6.2 returns 2.380784 for the first value and was corrected in 3.x.
    x, y = jnp.array([-2.0, -1.0, 1.0, 2.0]), jnp.array([1.0, 0.0, 1.0, 0.5])
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=jnp.full(4, 3.0))
    np.testing.assert_allclose(loss, [6.380784, 0.3132616, 0.939785, 1.253856], rtol=1e-6)


def test_the_ends_of_binary_cross_entropy_are_finite():
    p, y = jnp.array([0.0, 1.0, 0.0, 1.0]), jnp.array([0.0, 1.0, 1.0, 0.0])
    loss, grad = jax.value_and_grad(lambda p: F.binary_cross_entropy(p, y, reduction="sum"))(p)
    assert float(loss) == 200.0 and np.isfinite(grad).all()
    big = jnp.array([1e4, -1e4])
    loss, grad = jax.value_and_grad(lambda x: F.binary_cross_entropy_with_logits(x, jnp.array([0.0, 1.0])))(
        big
    )
    assert float(loss) == 1e4 and grad.tolist() == [0.5, -0.5]


def test_focal_loss_by_hand():
    # p = 0.5: alpha 0.25 * (0.5)^2 * log 2 for the positive, 0.75 for the negative.
    loss = F.sigmoid_focal_loss(jnp.zeros(2), jnp.array([1, 0]), reduction="none")
    np.testing.assert_allclose(loss, np.log(2) * 0.25 * np.array([0.25, 0.75]), rtol=1e-6)
    grad = jax.grad(lambda x: F.sigmoid_focal_loss(x, jnp.array([1.0])))(jnp.array([50.0]))
    assert np.isfinite(grad).all()


def test_regression_by_hand():
    x, y = jnp.array([0.0, 3.0]), jnp.array([0.5, 0.0])
    assert F.smooth_l1_loss(x, y, "none").tolist() == [0.125, 2.5]
    assert F.smooth_l1_loss(x, y, "none", delta=2.0).tolist() == [0.125, 4.0]
    assert F.kl_div(jnp.zeros(2), jnp.array([0.0, 1.0]), "none").tolist() == [0.0, 0.0]
    assert float(F.triplet_margin_loss(x[None], x[None], y[None] * 4, p=float("inf"))) == pytest.approx(
        0.0, abs=1e-5
    )


# -- CTC ----------------------------------------------------------------------------------------------------------


def brute_force(logits, label, blank):
    """-log of the sum over all paths that collapse to the label."""
    logs = np.asarray(jax.nn.log_softmax(logits, -1), np.float64)
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=logs.shape[0]):
        merged = [s for s, _ in itertools.groupby(path)]
        if [s for s in merged if s != blank] == list(label):
            total += np.exp(sum(logs[t, s] for t, s in enumerate(path)))
    return -np.log(total)


@pytest.mark.parametrize("label", [[], [1], [1, 2], [1, 1], [2, 1, 2]])
def test_ctc_sums_over_all_paths(label):
    logits = jnp.asarray(RNG.standard_normal((5, 1, 3)), jnp.float32)
    padded = jnp.array([[*label, *[0] * (3 - len(label))]])
    loss = F.ctc_loss(logits, padded, jnp.array([5]), jnp.array([len(label)]), reduction="none")
    assert float(loss[0]) == pytest.approx(brute_force(logits[:, 0], label, 0), rel=1e-5)


def test_ctc_ignores_what_lies_beyond_the_lengths():
    logits = jnp.asarray(RNG.standard_normal((6, 2, 4)), jnp.float32)
    lengths = (jnp.array([4, 6]), jnp.array([2, 1]))
    one = F.ctc_loss(logits, jnp.array([[1, 2, 0], [3, 0, 0]]), *lengths, reduction="none")
    other = F.ctc_loss(
        logits.at[4:, 0].set(9.0), jnp.array([[1, 2, 3], [3, 3, -1]]), *lengths, reduction="none"
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)
    alone = F.ctc_loss(logits[:4, :1], jnp.array([[1, 2]]), jnp.array([4]), jnp.array([2]), reduction="none")
    np.testing.assert_allclose(one[:1], alone, rtol=1e-5)


def test_ctc_labels_that_do_not_fit_cost_nothing_and_have_no_gradient():
    logits = jnp.asarray(RNG.standard_normal((3, 2, 4)), jnp.float32)
    labels, lengths = jnp.array([[1, 1, 2], [1, 2, 3]]), (jnp.array([3, 3]), jnp.array([3, 3]))
    loss, grad = jax.value_and_grad(lambda x: F.ctc_loss(x, labels, *lengths, reduction="sum"))(logits)
    assert np.isfinite(loss) and loss > 0 and np.abs(grad[:, 0]).max() == 0 and np.abs(grad[:, 1]).max() > 0


def test_ctc_is_finite_for_long_sequences_and_extreme_logits():
    logits = jnp.asarray(RNG.standard_normal((400, 2, 8)) * 50, jnp.float32)
    labels = jnp.asarray(RNG.integers(1, 8, (2, 60)))
    loss, grad = jax.value_and_grad(
        lambda x: F.ctc_loss(x, labels, jnp.array([400, 300]), jnp.array([60, 0]))
    )(logits)
    assert np.isfinite(loss) and np.isfinite(grad).all()
    np.testing.assert_allclose(grad.sum(-1), 0, atol=1e-4)  # softmax minus posterior


def test_ctc_layer_takes_norm_by_times():
    logits = jnp.asarray(RNG.standard_normal((4, 1, 3)), jnp.float32)
    arguments = (jnp.array([[1, 2]]), jnp.array([4]), jnp.array([2]))
    layer = nn.CTCLoss(reduction="sum")
    plain = jax.grad(lambda x: layer(x, *arguments))(logits)
    scaled = jax.grad(lambda x: layer(x, *arguments, norm_by_times=True))(logits)
    np.testing.assert_allclose(scaled * 4, plain, rtol=1e-5, atol=1e-7)


CTC = (jnp.zeros((4, 2, 3)), jnp.ones((2, 1), jnp.int32), jnp.array([4, 4]), jnp.array([1, 1]))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: F.cross_entropy(LOGITS, LABEL[:3]), "cross_entropy: labels do not fit the logits"),
        (
            lambda: F.cross_entropy(LOGITS, LABEL, soft_label=True),
            "cross_entropy: labels do not fit the logits",
        ),
        (lambda: F.cross_entropy(LOGITS, LABEL, jnp.ones(2)), "cross_entropy: one weight for each class"),
        (lambda: F.cross_entropy(LOGITS, LOGITS[:, 0]), "cross_entropy: hard labels are integers"),
        (lambda: F.cross_entropy(LOGITS, LABEL, reduction="avg"), "cross_entropy: unknown reduction"),
        (lambda: F.nll_loss(LOGITS, LABEL[:3]), "nll_loss: labels do not fit the log-probabilities"),
        (
            lambda: F.binary_cross_entropy(LOGITS, LABEL),
            "binary_cross_entropy: input and label have one shape",
        ),
        (
            lambda: F.binary_cross_entropy_with_logits(LOGITS, LABEL),
            "with_logits: input and label have one shape",
        ),
        (lambda: F.sigmoid_focal_loss(LOGITS, LABEL), "sigmoid_focal_loss: input and label have one shape"),
        (lambda: F.log_loss(LOGITS, LABEL), "log_loss: input and label have one shape"),
        (lambda: F.dice_loss(LOGITS, LABEL), "dice_loss: labels do not fit the probabilities"),
        (lambda: F.mse_loss(LOGITS, LABEL), "mse_loss: the arrays have one shape"),
        (lambda: F.kl_div(LOGITS, LOGITS, "average"), r"kl_div: unknown reduction(.|\n)*batchmean"),
        (lambda: F.cosine_embedding_loss(LOGITS, LOGITS, LABEL[:2]), "one label for each pair"),
        (lambda: F.ctc_loss(CTC[0][0], *CTC[1:]), "ctc_loss: logits, labels and lengths do not agree"),
        (lambda: F.ctc_loss(*CTC[:3], CTC[3][:1]), "ctc_loss: logits, labels and lengths do not agree"),
        (lambda: F.ctc_loss(*CTC, blank=3), r"ctc_loss: the blank is one of the classes(.|\n)*0 to 2"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()


@pytest.mark.parametrize("label", [3, 7, -1])
@pytest.mark.parametrize(
    ("loss", "ignored"),
    [
        (F.cross_entropy, True),
        (nn.CrossEntropyLoss(label_smoothing=0.1), True),
        (F.nll_loss, True),
        (lambda logits, label: F.softmax_with_cross_entropy(logits, label[:, None]), True),
        (lambda logits, label: F.dice_loss(jax.nn.softmax(logits), label[:, None]), False),
    ],
)
def test_a_label_that_is_no_class_is_refused_and_in_a_compiled_program_nan(loss, ignored, label):
    labels = LABEL.at[1].set(label)
    allowed = "allowed: 0 to 2, or -100 to ignore" if ignored else "allowed: 0 to 2\n"
    with pytest.raises(
        LabelError, match=rf"label {label} of 3 classes; 1 of 4 labels(.|\n)*{allowed}"
    ) as caught:
        loss(LOGITS, labels)
    assert caught.value.rows.tolist() == [1]
    assert np.isnan(np.asarray(jax.jit(loss)(LOGITS, labels))).any()
    sound = np.asarray(jax.jit(loss)(LOGITS, LABEL))
    np.testing.assert_allclose(sound, loss(LOGITS, LABEL), rtol=1e-6)


def test_labels_to_ignore_and_labels_of_eight_bits():
    ignoring = LABEL.at[1].set(255)
    expected = F.cross_entropy(LOGITS, jnp.where(ignoring == 255, -100, ignoring))
    assert F.cross_entropy(LOGITS, ignoring, ignore_index=255) == expected
    assert jax.jit(lambda x, y: F.cross_entropy(x, y, ignore_index=255))(LOGITS, ignoring) == expected
    wide = jnp.zeros((2, 256))
    assert F.cross_entropy(wide, jnp.array([0, 255], jnp.uint8)) == pytest.approx(np.log(256))
