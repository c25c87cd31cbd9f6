"""Recurrent layers, the Transformer and decoding of framework.paddle, against steps done one by one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError

nn = paddle.nn
N, T, C, H = 3, 4, 2, 3
LENGTHS = np.array([4, 1, 3])


def _tensor(*shape: int, seed: int = 0) -> paddle.Tensor:
    return paddle.Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


class _Watched(nn.RNNCellBase):
    """A user's cell around one of ours: RNN then runs it step by step."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell, self.input_size = cell, cell.input_size

    @property
    def state_shape(self) -> Any:
        return self.cell.state_shape

    def forward(self, inputs: Any, states: Any = None) -> Any:
        return self.cell(inputs, states)


def _flat(states: Any) -> list[np.ndarray]:
    return [
        part.numpy() for part in paddle.utils.flatten(list(states) if isinstance(states, tuple) else states)
    ]


@pytest.mark.parametrize("kind", [nn.SimpleRNNCell, nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_equals_its_steps(kind: Any, reverse: bool) -> None:
    cell, x, lengths = kind(C, H), _tensor(N, T, C), paddle.Tensor(LENGTHS)
    x.stop_gradient = False
    results = []
    for runner in (nn.RNN(cell, reverse), nn.RNN(_Watched(cell), reverse)):
        x.clear_grad()
        cell.clear_gradients()
        outputs, states = runner(x, None, lengths)
        (outputs * outputs).backward()
        assert x.grad is not None
        results.append([outputs.numpy(), *_flat(states), x.grad.numpy(), cell.weight_hh.grad.numpy()])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.SimpleRNN, nn.LSTM, nn.GRU])
def test_stacked_layers_equal_their_parts(kind: Any) -> None:
    net, x, lengths = kind(C, H, num_layers=2, direction="bidirect"), _tensor(N, T, C), paddle.Tensor(LENGTHS)
    outputs, states = net(x, sequence_length=lengths)
    first, _ = net[0](x, None, lengths)
    # Beyond the length LSTM and its kin give 0, RNN what the cell says.
    valid = (np.arange(T) < LENGTHS[:, None])[..., None]
    second, last = net[1](paddle.Tensor(first.numpy() * valid), None, lengths)
    np.testing.assert_allclose(outputs.numpy(), second.numpy() * valid, atol=1e-5)
    np.testing.assert_allclose(_flat(states)[0][2:], [_flat(s)[0] for s in last], atol=1e-5)
    major, _ = kind(C, H, time_major=True)(_tensor(T, N, C))
    assert major.shape == [T, N, H]


def test_lstm_state_has_both_spellings() -> None:
    net = nn.LSTM(C, H, direction="bidirect")
    assert net.state_dict()["weight_ih_l0_reverse"] is net.state_dict()["0.cell_bw.weight_ih"]
    assert [name for name, _ in net.named_parameters()] == [
        f"{name}_l0{suffix}"
        for suffix in ("", "_reverse")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    with pytest.raises(ShapeError):
        net(_tensor(N, C))


def test_dropout_between_layers_acts_while_training_only() -> None:
    net, x = nn.GRU(C, H, num_layers=2, dropout=0.9), _tensor(N, T, C)
    assert np.abs(net(x)[0].numpy() - net(x)[0].numpy()).max() > 0
    net.eval()
    np.testing.assert_array_equal(net(x)[0].numpy(), net(x)[0].numpy())


def test_a_frozen_bias_stays_in_the_state() -> None:
    cell = nn.LSTMCell(C, H, bias_ih_attr=False)
    assert cell.bias_ih.stop_gradient and "bias_ih" in cell.state_dict()


@pytest.mark.parametrize("before", [False, True])
def test_decoding_with_caches_equals_decoding_at_once(before: bool) -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, normalize_before=before)
    decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(8))
    target, memory = _tensor(N, T, 8), _tensor(N, 5, 8, seed=1)
    mask = nn.Transformer.generate_square_subsequent_mask(None, T)
    whole = decoder(target, memory, tgt_mask=mask).numpy()
    caches = decoder.gen_cache(memory)
    steps = []
    for t in range(T):
        out, caches = decoder(target[:, t : t + 1], memory, cache=caches)
        steps.append(out.numpy())
    np.testing.assert_allclose(np.concatenate(steps, 1), whole, atol=1e-5)


class DoubledQueries(nn.MultiHeadAttention):
    """What rotary attention of packages does: it changes queries after they are split into heads."""

    def _prepare_qkv(self, query: Any, key: Any, value: Any, cache: Any = None) -> tuple[Any, ...]:
        q, *rest = super()._prepare_qkv(query, key, value, cache)
        return (q * 2, *rest)


@pytest.mark.parametrize("with_cache", [False, True])
def test_attention_uses_the_queries_that_a_derived_layer_prepares(with_cache: bool) -> None:
    plain, doubled = nn.MultiHeadAttention(4, 2), DoubledQueries(4, 2)
    doubled.set_state_dict(plain.state_dict())
    plain.q_proj.weight.set_value(plain.q_proj.weight * 2)
    x = _tensor(1, 3, 4)
    out = [layer(x, cache=layer.gen_cache(x) if with_cache else None) for layer in (plain, doubled)]
    expected, found = [one[0] if with_cache else one for one in out]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_attention_without_values_takes_the_queries_as_paddle_does() -> None:
    layer = nn.MultiHeadAttention(4, 2)
    query, key = _tensor(1, 3, 4), _tensor(1, 3, 4, seed=1)
    assert layer(query, key).numpy().tolist() == layer(query, key, query).numpy().tolist()


def test_attention_hides_what_masks_hide() -> None:
    attention = nn.MultiHeadAttention(8, 2, need_weights=True)
    x, hidden = _tensor(1, T, 8), np.tril(np.ones((T, T), bool))
    _, weights = attention(x, attn_mask=paddle.Tensor(hidden))
    added = paddle.Tensor(np.where(hidden, 0, -1e9).astype(np.float32))
    _, same = attention(x, attn_mask=added)
    assert weights.shape == [1, 2, T, T] and not weights.numpy()[..., ~hidden].any()
    np.testing.assert_allclose(weights.numpy().sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights.numpy(), same.numpy(), atol=1e-6)
    with pytest.raises(ShapeError):
        nn.MultiHeadAttention(8, 3)


def test_transformer_gives_gradients_to_all() -> None:
    net = nn.Transformer(8, 2, 1, 1, 16, weight_attr=[nn.initializer.XavierNormal()] * 3)
    net(_tensor(2, 3, 8), _tensor(2, 4, 8)).backward()
    assert all(p.grad is not None for p in net.parameters())


class _Table(nn.RNNCellBase):
    """Scores of the next token from a table; the state counts steps."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.table = paddle.Tensor(table)

    def forward(self, inputs: Any, states: Any) -> Any:
        return paddle.gather(self.table, inputs), states + 1


def test_beam_search_finds_the_best_path() -> None:
    words, end, length = 5, 1, 4
    table = np.random.default_rng(3).standard_normal((words, words)).astype(np.float32)
    table[:, end] -= 9  # no path ends within the steps
    decoder = nn.BeamSearchDecoder(_Table(table), 0, end, beam_size=words**2)
    found, states, lengths = nn.dynamic_decode(
        decoder, paddle.zeros([2, 1]), max_step_num=length - 1, return_length=True
    )
    assert found.shape == [2, length, words**2] and lengths.numpy().max() == length
    scores = table - np.log(np.exp(table).sum(1, keepdims=True))
    best = max(
        itertools.product(range(words), repeat=length),
        key=lambda path: sum(scores[a, b] for a, b in zip((0, *path), path, strict=False)),
    )
    assert tuple(found.numpy()[1, :, 0]) == best
    assert states.cell_states.numpy().max() == length


@pytest.mark.parametrize("tags", [False, True])
def test_viterbi_finds_the_best_path(tags: bool) -> None:
    count = 4
    rng = np.random.default_rng(0)
    scores, moves = rng.standard_normal((3, 4, count)), rng.standard_normal((count, count))
    lengths = [4, 1, 3]
    best, paths = paddle.text.viterbi_decode(
        *(paddle.Tensor(v.astype(np.float32)) for v in (scores, moves)), paddle.Tensor(lengths), tags
    )
    for row, length in enumerate(lengths):
        totals = {}
        for path in itertools.product(range(count), repeat=length):
            total = sum(scores[row, t, tag] for t, tag in enumerate(path))
            total += sum(moves[a, b] for a, b in itertools.pairwise(path))
            totals[path] = total + (moves[-1, path[0]] + moves[-2, path[-1]] if tags else 0)
        winner = max(totals, key=totals.__getitem__)
        assert tuple(paths.numpy()[row]) == (*winner, *[0] * (4 - length))
        assert best.numpy()[row] == pytest.approx(totals[winner], rel=1e-5)


def test_the_base_of_recurrent_layers_makes_layers_of_a_mode() -> None:
    base = paddle.nn.layer.rnn.RNNBase
    for made in (paddle.nn.LSTM(2, 3), paddle.nn.GRU(2, 3), paddle.nn.SimpleRNN(2, 3, activation="relu")):
        assert isinstance(made, base)
        again = base(made.mode, 2, 3)
        assert list(again.state_dict()) == list(made.state_dict())
        again.set_state_dict(made.state_dict())
        x = paddle.to_tensor([[[0.5, -1.0], [2.0, 0.25]]])
        np.testing.assert_allclose(again(x)[0].numpy(), made(x)[0].numpy())
    with pytest.raises(ValueError, match="RNN_RELU"):
        base("ELMAN", 2, 3)
