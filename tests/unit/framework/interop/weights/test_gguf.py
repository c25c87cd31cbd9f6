"""GGUF files that the test packs itself, whole and damaged."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.source import Source
from framework.interop.weights.gguf import read_gguf
from framework.interop.weights.gguf_models import gguf_settings, gguf_state

_CODES = {int: (4, "<I"), float: (6, "<f"), bool: (7, "?")}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        items = b"".join(value_bytes(one)[4:] for one in value)
        return struct.pack("<IIQ", 9, struct.unpack("<I", value_bytes(value[0])[:4])[0], len(value)) + items
    code, form = _CODES[type(value)]
    return struct.pack("<I", code) + struct.pack(form, value)


def gguf_bytes(metadata: dict[str, object], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """A file of version 3; tensors are (shape, ggml type, data)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + value_bytes(value) for key, value in metadata.items())
    data = b""
    for name, (shape, code, values) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        head += struct.pack("<IQ", code, len(data))
        data += values + bytes(-len(values) % 32)
    return head + bytes(-len(head) % 32) + data


def q8(array: np.ndarray) -> bytes:
    """Q8_0: blocks of 32, a float16 scale and 32 int8."""
    blocks = array.reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 127).astype("<f2")
    levels = np.rint(blocks / scale.astype(np.float32)[:, None]).astype(np.int8)
    return b"".join(s.tobytes() + q.tobytes() for s, q in zip(scale, levels))


WIDTH, HEADS, KV, HIDDEN, VOCAB = 64, 4, 2, 96, 40
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": HIDDEN,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 500000.0,
    "llama.rope.dimension_count": 16,
    "tokenizer.ggml.eos_token_id": 2,
    "some.list": [[1, 2], [3]],
    "some.flags": [True, False],
}


def side_by_side(array: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order of the rows of a head, of Hugging Face's: 0, D/2, 1, D/2 + 1, ..."""
    half = len(array) // heads // 2
    order = [h * 2 * half + i + s * half for h in range(heads) for i in range(half) for s in (0, 1)]
    return array[order]


def decoder() -> tuple[bytes, dict[str, np.ndarray]]:
    """A file, and its arrays in Hugging Face's names and order."""
    rng = np.random.default_rng(0)
    block = "model.layers.0."
    shapes = {
        "model.embed_tokens": ("token_embd", (VOCAB, WIDTH)),
        "model.norm": ("output_norm", (WIDTH,)),
        "lm_head": ("output", (VOCAB, WIDTH)),
        block + "self_attn.q_proj": ("blk.0.attn_q", (WIDTH, WIDTH)),
        block + "self_attn.k_proj": ("blk.0.attn_k", (32, WIDTH)),
        block + "self_attn.v_proj": ("blk.0.attn_v", (32, WIDTH)),
        block + "self_attn.o_proj": ("blk.0.attn_output", (WIDTH, WIDTH)),
        block + "input_layernorm": ("blk.0.attn_norm", (WIDTH,)),
        block + "post_attention_layernorm": ("blk.0.ffn_norm", (WIDTH,)),
        block + "mlp.gate_proj": ("blk.0.ffn_gate", (HIDDEN, WIDTH)),
        block + "mlp.up_proj": ("blk.0.ffn_up", (HIDDEN, WIDTH)),
        block + "mlp.down_proj": ("blk.0.ffn_down", (WIDTH, HIDDEN)),
    }
    arrays = {name: rng.standard_normal(shape, dtype=np.float32) for name, (_, shape) in shapes.items()}
    tensors = {}
    for name, (theirs, shape) in shapes.items():
        array = arrays[name]
        heads = {"q_proj": HEADS, "k_proj": KV}.get(name.rpartition(".")[2])
        array = side_by_side(array, heads) if heads else array
        tensors[f"{theirs}.weight"] = (
            (shape, 8, q8(array)) if len(shape) == 2 else (shape, 0, array.tobytes())
        )
    return gguf_bytes(METADATA, tensors), arrays


def write(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def test_a_decoder(tmp_path: Path) -> None:
    data, arrays = decoder()
    file = read_gguf(write(tmp_path, data))
    assert file.metadata["some.list"] == [[1, 2], [3]] and file.metadata["some.flags"] == [True, False]
    state = gguf_state(file)
    assert {name.removesuffix(".weight") for name in state} == set(arrays)
    for name, array in arrays.items():
        assert state.shape(f"{name}.weight") == array.shape
        np.testing.assert_allclose(state[f"{name}.weight"], array, atol=0.02)
    settings = gguf_settings(file)
    assert settings["tie_word_embeddings"] is False and settings["vocab_size"] == VOCAB
    assert (
        settings["head_dim"] == 16 and settings["num_key_value_heads"] == KV and settings["eos_token_id"] == 2
    )


def test_it_is_loaded_and_saved(tmp_path: Path) -> None:
    import jax.numpy as jnp

    from nlp import llm

    data, _ = decoder()
    ids = jnp.asarray([[1, 2, 3]], jnp.int32)
    model = llm.load(write(tmp_path, data))
    floats = np.asarray(model.model(ids))
    small = llm.load(tmp_path / "model.gguf", weights="int8")
    folder = small.save(tmp_path / "int8")
    again = llm.load(folder)  # its config says that activations have 8 bits
    np.testing.assert_array_equal(again.model(ids), small.model(ids))
    assert np.linalg.norm(np.asarray(small.model(ids)) - floats) < 0.1 * np.linalg.norm(floats)


def test_blocks_with_uneven_levels(tmp_path: Path) -> None:
    """IQ4_NL and IQ4_XS, by hand; all levels that are not set are the lowest, -127."""
    half = np.array([0.5], "<f2").tobytes()
    small = half + bytes([0xF0, 0x87]) + bytes(14)
    scales = struct.pack("<H", 2 << 10) + bytes([0, 0, 0x30, 0])  # that of the sixth group is 3 + 16 * 2 - 32
    large = half + scales + bytes(80) + bytes([0xF0]) + bytes(47)
    file = read_gguf(write(tmp_path, gguf_bytes({}, {"a": ((32,), 20, small), "b": ((256,), 23, large)})))
    expected = np.full(32, -63.5, np.float32)
    expected[[1, 16, 17]] = -5, 56.5, 0.5
    np.testing.assert_array_equal(file.array("a"), expected)
    groups = np.full((8, 32), 2032, np.float32)
    groups[5] = -190.5
    groups[5, 16] = 169.5
    np.testing.assert_array_equal(file.array("b"), groups.reshape(-1))


def test_a_kind_that_is_not_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="received: Q8_K\n"):
        read_gguf(write(tmp_path, gguf_bytes({}, {"a": ((256,), 15, bytes(292))})))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"GGML" + d[4:], "not a GGUF file"),
        (lambda d: d[:4] + struct.pack(">I", 3) + d[8:], "highest byte first"),
        (lambda d: d[:4] + struct.pack("<I", 1) + d[8:], "version 1"),
        (lambda d: d[:8] + struct.pack("<Q", 1 << 60) + d[16:], "too short for the tensors"),
        (lambda d: d[:16] + struct.pack("<Q", 1 << 60) + d[24:], "too short for the values"),
        (lambda d: d[:24] + struct.pack("<Q", 1 << 50) + d[32:], "too long"),
        (lambda d: d[:-40], "the file ends inside the tensor"),
        (lambda d: d.replace(text("token_embd.weight"), text("output_normxweight")), "none of a llama"),
    ],
)
def test_damage_is_named(change: object, message: str, tmp_path: Path) -> None:
    assert callable(change)
    with pytest.raises(FormatError, match=message):
        gguf_state(read_gguf(write(tmp_path, change(decoder()[0]))))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("general.architecture", "mamba", "architecture is not read"),
        ("general.alignment", 12, "cannot be aligned"),
        ("llama.expert_count", 8, "mixtures of experts"),
        ("llama.block_count", [1, 2], "another one in each layer"),
        ("llama.attention.head_count", 5, r"gguf: blk.0.attn_q.weight: .* does not fit its number of heads"),
    ],
)
def test_what_is_refused(key: str, value: object, message: str, tmp_path: Path) -> None:
    tensors = {"token_embd.weight": ((2, 32), 0, bytes(256)), "blk.0.attn_q.weight": ((64, 2), 0, bytes(512))}
    data = gguf_bytes({**METADATA, key: value}, tensors)
    with pytest.raises(FormatError, match=message):
        gguf_state(read_gguf(write(tmp_path, data)))


def test_shapes_and_kinds_of_tensors(tmp_path: Path) -> None:
    for tensor, message in (
        (((2, 31), 8, bytes(68)), "not whole blocks"),
        (((2, 32), 99, bytes(68)), "a kind that is not read"),
        (((0, 32), 0, b""), "larger than the file, or empty"),
        (((1 << 40, 1 << 30), 0, b""), "larger than the file, or empty"),
    ):
        with pytest.raises(FormatError, match=message):
            read_gguf(write(tmp_path, gguf_bytes({}, {"x": tensor})))


def test_cut_and_mutated_files_end_in_our_errors(tmp_path: Path) -> None:
    data, _ = decoder()
    rng = random.Random(0)
    for number in range(300):
        changed = bytearray(data[: rng.randrange(len(data))] if number % 3 == 0 else data)
        for _ in range(0 if number % 3 == 0 else 4):
            changed[rng.randrange(min(len(changed), 1500))] = rng.randrange(256)
        try:
            state = gguf_state(read_gguf(write(tmp_path, bytes(changed))))
            [state[name] for name in state]
        except FormatError:
            continue


def split(data: bytes, count: int, said: int | None = None) -> list[bytes]:
    """The tensors of a file in turn over several, of which the first has the metadata."""
    whole = read_gguf(Source("whole", memoryview(data)))
    names = list(whole.tensors)
    files = []
    for number in range(count):
        about: dict[str, object] = {
            "split.no": number,
            "split.count": count,
            "split.tensors.count": said or len(names),
        }
        tensors = {
            name: (
                whole.tensors[name].shape,
                {"F32": 0, "Q8_0": 8}[whole.tensors[name].kind],
                bytes(whole.data(name)),
            )
            for name in names[number::count]
        }
        files.append(gguf_bytes({**(METADATA if not number else {}), **about}, tensors))
    return files


def test_a_model_in_several_files(tmp_path: Path) -> None:
    data, arrays = decoder()
    paths = [tmp_path / f"tiny-q8_0-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for path, one in zip(paths, split(data, 3)):
        path.write_bytes(one)
    for path in paths:
        state = gguf_state(read_gguf(path))
        assert state.keys() == {f"{name}.weight" for name in arrays}
        for name, array in arrays.items():
            np.testing.assert_allclose(state[f"{name}.weight"], array, atol=0.02)
    paths[1].unlink()
    with pytest.raises(
        FormatError, match=r"file of the model is missing[\s\S]*no tiny-q8_0-00002-of-00003.gguf"
    ):
        read_gguf(paths[0])
    paths[1].write_bytes(split(data, 3)[0])
    with pytest.raises(FormatError, match="is in two files of the model"):
        read_gguf(paths[0])
    for path, one in zip(paths, split(data, 3, 99)):
        path.write_bytes(one)
    with pytest.raises(FormatError, match="not those of one model"):
        read_gguf(paths[0])
    with pytest.raises(FormatError, match="whose names say which"):
        read_gguf(write(tmp_path, paths[0].read_bytes()))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"scale_linear": 8.0}, {"rope_type": "linear", "factor": 8.0}),
        ({"scaling.type": "none", "scaling.factor": 4.0}, None),
        ({"scaling.type": "linear", "scaling.factor": 0.0}, None),
        (
            {
                "scaling.type": "yarn",
                "scaling.factor": 4.0,
                "scaling.original_context_length": 32,
                "scaling.yarn_beta_fast": 16.0,
            },
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16.0},
        ),
    ],
)
def test_stretched_positions(said: dict[str, object], expected: dict[str, object] | None) -> None:
    metadata = {**METADATA, **{f"llama.rope.{key}": value for key, value in said.items()}}
    assert (
        gguf_settings(read_gguf(Source("tiny", memoryview(gguf_bytes(metadata, {}))))).get("rope_scaling")
        == expected
    )
