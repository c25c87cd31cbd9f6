"""A folder of a tiny language model, as transformers writes it, with a tokenizer and a chat template."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from framework.core import rng
from zoo.layers.decoder_weights import build_decoder, save_decoder

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }} <tool_call><|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LENGTH = 2048


def write_folder(folder: Path, seed: int = 1, size: int = 32) -> Path:
    """The folder, with weights of this seed."""
    shutil.copytree(_made(size), folder, dirs_exist_ok=True)
    rng.seed(seed)
    save_decoder(build_decoder(folder), folder)
    return folder


@functools.cache
def _made(size: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="oar-tiny-decoder-"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=list(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    texts = ["the quick brown fox jumps over the lazy dog. " * 5, "user assistant hello world 你好"]
    tokenizer.train_from_iterator(texts * 3, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": SPECIAL[2], "pad_token": SPECIAL[0], "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    config = {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": size,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 2 * size,
        "max_position_embeddings": LENGTH,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e4,
        "tie_word_embeddings": True,
        "eos_token_id": 2,
        "bos_token_id": 0,
        "initializer_range": 0.5,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
