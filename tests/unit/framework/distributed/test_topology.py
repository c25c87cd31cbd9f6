"""GPUs that are not here: what the compiler is told of them, and, where jax's plugin is installed, what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.distributed.planning.hardware import HARDWARE
from framework.distributed.planning.topology import GPUS, _describe, has_compiler

# A decoder of eight blocks, divided among eight: its training step must gather and sum by parts.
PROGRAM = """
import re
import jax
import numpy as np
jax.config.update("jax_platforms", "cpu")
from framework.config import build
from framework.distributed.mesh import ParallelOptions
from framework.distributed.planning.topology import absent_devices
from framework.engine.abstract_step import AbstractStep
from framework.engine.experiment import TrainOptions
from framework.optimizer import AdamW
from nlp.tasks.causal_lm import CausalLanguageModel
from zoo.decoder.llama import LlamaConfig

model = build(LlamaConfig(variant="llama-3-8b", num_layers=1, hidden_size=1024, num_heads=8, num_kv_heads=8,
    intermediate_size=2048, vocab_size=8192))
batch = {name: jax.ShapeDtypeStruct((8, 1024), np.int32) for name in ("input_ids", "targets", "positions")}
options = TrainOptions(iters=10, amp="bfloat16", amp_level="O2", recompute=r"layers\\.\\d+$")
step = AbstractStep(model, CausalLanguageModel(chunks=8), AdamW(learning_rate=1e-4, weight_decay=0.01), options, batch)
compiled = step.compile(absent_devices("h200", 8), ParallelOptions(fsdp=8)).program
text, memory = compiled.as_text(), compiled.memory_analysis()
count = sum(parameter.size for _, parameter in model.named_parameters())
print(memory.argument_size_in_bytes / (12 * count / 8), len(re.findall(r" reduce-scatter(?:-start)?\\(", text)))
print(max(int(n) for n in re.findall(r"f32\\[(\\d+)\\]\\S* all-reduce-start\\(", text)))
print("f32[8,8,1024,1024]" in text, "__cudnn$fmha" in text)
"""


@pytest.mark.parametrize("name", GPUS)
def test_what_the_compiler_is_told(name: str) -> None:
    text = _describe(name)
    assert f"memory_bandwidth: {int(HARDWARE[name].bandwidth)} " in text
    assert f'"{GPUS[name].title}"' in text and text.count("{") == text.count("}") == 4
    major, minor = GPUS[name].capability
    assert f"cuda_compute_capability {{ major: {major} minor: {minor} }}" in text


def test_no_compiler_for_what_is_not_told() -> None:
    assert not has_compiler("tpu-v5p") and not has_compiler("cpu")


@pytest.mark.skipif(not has_compiler("h200"), reason="needs jax's plugin for CUDA: pip install 'jax[cuda13]'")
def test_a_step_for_eight_gpus() -> None:
    repo = Path(__file__).resolve().parents[4]
    path = os.pathsep.join([str(repo), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "OAR_COMPILATION_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Involuntary full rematerialization" not in done.stderr
    first, second, third = (line.split() for line in done.stdout.splitlines()[-3:])
    assert float(first[0]) == pytest.approx(1, rel=1e-2)  # float32 numbers and two moments, an eighth on each
    assert int(first[1]) > 0  # gradients are summed and divided in one
    assert int(second[0]) <= 16  # what all devices sum is losses and norms alone
    assert third[1] == "True" or third[0] == "True"  # cuDNN's kernel, where it is at hand
