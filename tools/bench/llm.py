"""Tokens a second of a language model, batch 1, by the precision of its weights, beside other toolkits.

All take turns on a few tokens, each in its own process; on a shared machine the ratios by CPU time say more than those
by the clock. The first competitor is what the others are compared with: an "x" above 1 says that it is faster.

    python -m tools.bench llm                                         float32, bfloat16, int8 and int4 of this toolkit
    python -m tools.bench llm --model FOLDER --torch_python P --openvino_python P --openvino FOLDER
                              --llama_python P --gguf FILE            besides torch, OpenVINO GenAI and llama.cpp
    python -m tools.bench llm --only float32 --batch 1 8 --torch_python P    the engine with so many texts at once
    python -m tools.bench llm --clients 16 [--model FOLDER] [--tokens 64]    a server of so many streaming clients
                              beside the engine in a loop over the same prompts; see tools.bench.llm_server

Without --model the shapes of Qwen2.5-0.5B get random weights, which takes 1 GB in a temporary folder. FOLDER of
--openvino is what optimum-intel writes with OVWeightQuantizationConfig(bits=8); FILE is Q8_0.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.bench.llm_server import serve_clients
from tools.bench.peers import Run, Worker, arguments, compare, serve

PROMPT, LENGTH = 16, 128
OURS = ("int8", "float32", "bfloat16", "int4")


def llm(argv: list[str]) -> None:
    parser = arguments(
        __doc__, model=None, variant="qwen2.5-0.5b", tokens=16, rounds=5, threads=2, torch_python=None,
        openvino_python=None, openvino=None, llama_python=None, gguf=None, only=list(OURS),
        batch=["1", "2", "4", "8", "16"], clients=0,
    )  # fmt: skip
    parser.set_defaults(batch=[])
    parser.set_defaults(only=list(OURS))
    options = parser.parse_args(argv)
    if options.clients:
        serve_clients(options.model, options.clients, options.tokens, options.rounds, options.threads)
        return
    with tempfile.TemporaryDirectory() as work:
        folder = options.model or write_random(Path(work) / options.variant, options.variant)
        tokens, threads = str(options.tokens), options.threads
        workers = [
            Worker(
                form, sys.executable, "tools.bench.llm", "ours", str(folder), tokens, form, threads=threads
            )
            for form in options.only
        ]
        workers += [
            Worker(
                f"engine x{rows}",
                sys.executable,
                "tools.bench.llm",
                "engine",
                str(folder),
                tokens,
                rows,
                threads=threads,
            )
            for rows in options.batch
        ]
        peers = [
            ("torch bf16", options.torch_python, "torch", folder, "bfloat16"),
            ("torch f32", options.torch_python, "torch", folder, "float32"),
            ("OpenVINO", options.openvino_python, "openvino", options.openvino, ""),
            ("llama.cpp", options.llama_python, "llama_cpp", options.gguf, ""),
        ]
        for name, python, kind, source, form in peers:
            if python and source:
                words = (kind, str(source), tokens, form)
                workers.append(Worker(name, python, "tools.bench.llm", *words, threads=threads))
        compare(workers, options.rounds, options.tokens, "tokens")


def write_random(folder: Path, variant: str) -> Path:
    """A model of these shapes with random weights in bfloat16, as transformers would write it."""
    import jax.numpy as jnp
    import numpy as np

    from framework.config import available, build, find
    from zoo.layers.decoder_config import DecoderConfig
    from zoo.layers.decoder_weights import save_decoder

    configs = [find("model", name, ("zoo",)).config for name in available("model", ("zoo",))]
    family = next(c for c in configs if issubclass(c, DecoderConfig) and variant in c.variants)
    model, rng = build(family(variant)).eval(), np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        scale, start = (0.02, 0.0) if len(parameter.shape) > 1 else (0.0, float("norm" in name))
        parameter.dtype = np.dtype(jnp.bfloat16)
        values = rng.standard_normal(parameter.shape, dtype=np.float32) * scale + start
        parameter.set_value(jnp.asarray(values, jnp.bfloat16))
    save_decoder(model, folder)
    return folder


# -- competitors -----------------------------------------------------------------------------------------------------


def ours(source: str, count: int, form: str) -> Run:
    """This toolkit: float types by name, or weights of few bits."""
    import jax
    import jax.numpy as jnp

    from framework import nn
    from framework.core.compilation import compile_options
    from framework.core.device import default_device
    from nlp import llm

    low = form.startswith("int")
    model = llm.load(source, dtype=None if low else form, weights=form if low else None).model
    graph, params, buffers = nn.split(model)
    kind = "float32" if low else form

    def decode(params: Any, ids: jax.Array, positions: jax.Array, cache: Any) -> Any:
        (hidden, cache), _ = nn.apply(graph, params, buffers, None, ids, positions, cache, method="decode")
        scores, _ = nn.apply(graph, params, buffers, None, hidden[:, -1:], method="logits")
        return jnp.argmax(scores, -1).astype(jnp.int32), cache

    step = jax.jit(decode, donate_argnums=(3,), compiler_options=compile_options(default_device()))

    def run() -> list[int]:
        prompt = jnp.arange(PROMPT, dtype=jnp.int32)[None]
        token, cache = step(params, prompt, prompt, model.new_cache(1, LENGTH, kind))
        text = []
        for position in range(PROMPT, PROMPT + count):
            token, cache = step(params, token, jnp.full((1, 1), position, jnp.int32), cache)
            text.append(int(token[0, 0]))
        return text

    return run


def engine(source: str, count: int, form: str) -> Run:
    """`LanguageModel.generate` in float32: as many tokens in all, over so many texts."""
    from nlp import llm

    model, rows = llm.load(source, dtype="float32"), int(form)
    prompts = [list(range(row, row + PROMPT)) for row in range(rows)]

    def run() -> list[int]:
        results = model.generate(prompts, max_new_tokens=count // rows, ignore_eos=True)
        return [token for result in results for token in result.ids]

    return run


def torch(source: str, count: int, form: str) -> Run:
    """transformers in eager mode."""
    import torch as torch_
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch_, form)).eval()
    prompt = torch_.arange(PROMPT)[None]

    def run() -> list[int]:
        with torch_.no_grad():
            text = model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False)
        return text[0, PROMPT:].tolist()

    return run


def openvino(source: str, count: int, form: str) -> Run:
    """optimum-intel: the model of OpenVINO GenAI in a loop of transformers'."""
    import torch as torch_
    from optimum.intel import OVModelForCausalLM

    model = OVModelForCausalLM.from_pretrained(source, ov_config={"INFERENCE_NUM_THREADS": "2"})
    prompt = torch_.arange(PROMPT)[None]

    def run() -> list[int]:
        text = model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False)
        return text[0, PROMPT:].tolist()

    return run


def llama_cpp(source: str, count: int, form: str) -> Run:
    """llama.cpp by its Python binding."""
    import numpy as np
    from llama_cpp import Llama

    model = Llama(source, n_ctx=LENGTH, n_threads=2, verbose=False, logits_all=False)

    def run() -> list[int]:
        model.reset()
        model.eval(list(range(PROMPT)))
        text = []
        for _ in range(count):
            scores = np.ctypeslib.as_array(model._ctx.get_logits(), shape=(model.n_vocab(),))
            text.append(int(scores.argmax()))
            model.eval(text[-1:])
        return text

    return run


if __name__ == "__main__":
    kind_, source_, count_, form_ = sys.argv[1:]
    makers = {"ours": ours, "engine": engine, "torch": torch, "openvino": openvino, "llama_cpp": llama_cpp}
    serve(lambda: (makers[kind_](source_, int(count_), form_), {}))
