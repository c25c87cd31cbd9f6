"""How decoders are divided among devices, without a rule, and that they compute there what they compute on one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from framework.config import build
from framework.distributed import ParallelOptions
from framework.distributed.layout import parameter_specs
from tests.unit.zoo.decoder.meshes_run import MESHES, MODELS
from zoo.decoder.gpt2 import GPT2Config
from zoo.decoder.t5 import T5Config

SIZES = {"data": 1, "pipeline": 1, "fsdp": 2, "sequence": 1, "expert": 2, "tensor": 2}
COLUMNS, ROWS = P("fsdp", "tensor"), P("tensor", "fsdp")


def test_the_table_follows_from_the_kinds_of_layers() -> None:
    specs = parameter_specs(build(MODELS["qwen3_moe"]), ParallelOptions(smallest=33), SIZES)
    block = "model.layers.0"
    assert specs["model.embed_tokens.weight"] == specs["lm_head.weight"] == COLUMNS
    assert all(specs[f"{block}.self_attn.{name}_proj.weight"] == COLUMNS for name in "qkv")
    assert specs[f"{block}.self_attn.o_proj.weight"] == ROWS
    assert (
        specs[f"{block}.mlp.experts.gate_proj"]
        == specs[f"{block}.mlp.experts.up_proj"]
        == P("expert", *COLUMNS)
    )
    assert specs[f"{block}.mlp.experts.down_proj"] == P("expert", *ROWS)
    assert specs[f"{block}.input_layernorm.weight"] == P()


def test_second_products_by_the_names_of_other_families() -> None:
    size = {"vocab_size": 64, "hidden_size": 32, "num_layers": 1, "num_heads": 4, "intermediate_size": 48}
    gpt2 = parameter_specs(build(GPT2Config(**size)), ParallelOptions(smallest=33), SIZES)
    assert gpt2["transformer.h.0.attn.c_proj.weight"] == gpt2["transformer.h.0.mlp.c_proj.weight"] == ROWS
    assert gpt2["transformer.h.0.attn.c_attn.weight"] == gpt2["transformer.h.0.mlp.c_fc.weight"] == COLUMNS
    t5 = parameter_specs(build(T5Config(**size, head_dim=8)), ParallelOptions(smallest=33), SIZES)
    assert t5["encoder.block.0.layer.0.SelfAttention.o.weight"] == ROWS
    assert t5["decoder.block.0.layer.2.DenseReluDense.wo.weight"] == ROWS


def losses(cases: list[str]) -> dict[str, list[float]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.unit.zoo.decoder.meshes_run", *cases],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Involuntary full rematerialization" not in run.stderr
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {row["case"]: row["losses"] for row in rows}


def check(cases: list[str]) -> None:
    found = losses(cases)
    assert set(found) == set(cases)
    for case, values in found.items():
        np.testing.assert_allclose(values, found[f"{case.partition('/')[0]}/one"], rtol=1e-6, err_msg=case)


def test_losses_on_eight_devices_are_those_of_one() -> None:
    check(["llama/one", "llama/fsdp tensor", "qwen3_moe/one", "qwen3_moe/expert"])


@pytest.mark.slow
def test_losses_on_every_mesh() -> None:
    check([f"{model}/{mesh}" for model in MODELS for mesh in MESHES if mesh != "expert" or "moe" in model])
