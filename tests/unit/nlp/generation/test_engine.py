from __future__ import annotations

import collections
import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from nlp.generation.batch_state import BatchState
from nlp.generation.constraint import Choice, JsonSchema, Regex
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions
from nlp.generation.programs import Programs
from nlp.generation.request import GenerationResult
from nlp.generation.speculation import Speculation, ngram_drafts
from tests.unit.nlp.generation.tiny_decoder import TinyDecoder, TinyEncoderDecoder, byte_tokenizer

WAIT = 600  # seconds for a token: no measure, an end for what hangs, also on a machine that is busy
PROMPTS = [[5], [1, 2, 3], list(range(40)), [7, 8, 9, 7, 8, 9, 7, 8]]
OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 0.8, "seed": 3},
    "top_k": {"temperature": 1.4, "top_k": 5, "seed": 2**63, "repetition_penalty": 1.2},
    "top_p": {"top_k": 0, "top_p": 0.7, "min_p": 0.01, "seed": -1, "logprobs": 3},
    "typical": {"typical_p": 0.8, "seed": 5, "presence_penalty": 0.7, "frequency_penalty": 0.2},
    "bans": {
        "no_repeat_ngram_size": 2,
        "bad_words": [[3], [4, 5]],
        "min_new_tokens": 5,
        "eos_token_id": [11],
    },
    "bias": {"logit_bias": {"6": 4.0}, "suppress_tokens": [1], "exponential_decay_length_penalty": (3, 1.2)},
}


@functools.cache
def decoder() -> TinyDecoder:
    return TinyDecoder()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(decoder(), None, slots=4, max_length=512, chunk=64) as engine:
        yield engine


def options(**changes: Any) -> GenerationOptions:
    return GenerationOptions(max_new_tokens=20).merge(**changes)


def run(engine: Engine, prompt: list[int], **changes: Any) -> GenerationResult:
    return engine.submit(prompt, options(**changes)).result(WAIT)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_texts_are_those_without_a_cache(engine: Engine, prompt: list[int]) -> None:
    result = run(engine, prompt)
    assert list(result.ids) == decoder().greedy(prompt, 20)
    assert (result.finish_reason, result.prompt_ids, result.text) == ("length", tuple(prompt), "")


def test_a_prompt_of_many_chunks(engine: Engine) -> None:
    prompt = np.random.default_rng(0).integers(0, 97, 333).tolist()
    assert list(run(engine, prompt, max_new_tokens=6).ids) == decoder().greedy(prompt, 6)


def test_a_text_does_not_depend_on_its_batch(engine: Engine) -> None:
    """More requests than rows, of all options and lengths, and one program."""
    pairs = [(prompt, changes) for prompt in PROMPTS[1:] for changes in OPTIONS.values()]
    alone = [run(engine, prompt, **changes) for prompt, changes in pairs]
    together = [engine.submit(prompt, options(**changes)) for prompt, changes in pairs]
    for before, request in zip(alone, together, strict=True):
        result = request.result(WAIT)
        assert result.ids == before.ids
        assert [one.token for one in result.logprobs] == [one.token for one in before.logprobs]
    assert len({result.ids for result in alone}) > len(pairs) / 2


def test_one_program_serves_all_options_and_lengths() -> None:
    with Engine(decoder(), None, slots=3, max_length=128, chunk=16) as engine:
        requests = [
            engine.submit(prompt, options(**changes)) for prompt in PROMPTS for changes in OPTIONS.values()
        ]
        for request in requests:
            request.result(WAIT)
        # A second one for the longer table of bad words; it serves all the others, too.
        assert engine.programs.step._cache_size() <= 2
        for changes in OPTIONS.values():
            run(engine, [1, 2], **changes)
        assert engine.programs.step._cache_size() <= 2


def test_the_step_aliases_its_whole_state() -> None:
    for speculation in (None, Speculation(3)):
        programs = Programs(decoder(), speculation)
        batch = BatchState(programs, 3, 512)
        compiled = programs.step.lower(programs.params, batch.state, batch._all).compile()
        memory = compiled.memory_analysis()
        assert memory is not None
        state = sum(leaf.nbytes for leaf in jax.tree.leaves(batch.state))
        caches = sum(leaf.nbytes for leaf in jax.tree.leaves(batch.state.cache))
        assert memory.alias_size_in_bytes >= state - 1024  # settings are padded to 16 bytes
        assert memory.temp_size_in_bytes < caches, "the step copies the cache"


def test_the_cache_grows(engine: Engine) -> None:
    result = run(engine, [1, 2, 3], max_new_tokens=400)
    assert list(result.ids[:300]) == decoder().greedy([1, 2, 3], 300)
    assert len(result.ids) == 400


def test_a_text_ends_at_the_longest_length(engine: Engine) -> None:
    result = run(engine, [1] * 500, max_new_tokens=400)
    assert (len(result.ids), result.finish_reason) == (12, "length")


def test_a_prompt_that_is_too_long(engine: Engine) -> None:
    with pytest.raises(InputError, match="too long for the model"):
        engine.submit([1] * 512, options())
    result = run(engine, [*range(90)] * 6, truncate_prompt=True)
    assert result.prompt_ids == tuple(([*range(90)] * 6)[-492:])
    assert "48 tokens" in result.warnings[0]


@pytest.mark.parametrize(
    "prompt, changes, error, message",
    [
        ([], {}, InputError, "the prompt has no token"),
        ([1, 97], {}, InputError, "not in the vocabulary"),
        ([1], {"eos_token_id": 97}, ConfigError, "eos_token_id: a token of an option"),
        ([1], {"logit_bias": {1000: 1.0}}, ConfigError, "logit_bias"),
        ([1], {"stop": "x"}, ConfigError, "need a tokenizer"),
        ([1, 2, 3], {"max_length": 3, "max_new_tokens": None}, InputError, "as long as max_length"),
    ],
)
def test_what_is_refused(
    engine: Engine, prompt: list[int], changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    base = GenerationOptions().merge(**changes)
    with pytest.raises(error, match=message):
        engine.submit(prompt, base)


def test_where_every_token_is_banned(engine: Engine) -> None:
    other = engine.submit([1, 2], options(max_new_tokens=40))
    with pytest.raises(InputError, match="every token is banned"):
        run(engine, [1], suppress_tokens=list(range(97)))
    assert list(other.result(WAIT).ids) == decoder().greedy([1, 2], 40)


def test_end_tokens(engine: Engine) -> None:
    ids = decoder().greedy([1, 2, 3], 20)
    end = next(token for token in ids[3:] if token not in ids[:3])
    result = run(engine, [1, 2, 3], eos_token_id=[96, end])
    at = ids.index(end)
    assert (list(result.ids), result.finish_reason, result.stop) == (ids[: at + 1], "stop", end)
    assert list(run(engine, [1, 2, 3], eos_token_id=end, ignore_eos=True).ids) == ids
    longer = run(engine, [1, 2, 3], eos_token_id=end, min_new_tokens=at + 3)
    assert len(longer.ids) >= at + 3 and longer.ids[at] != end


def test_a_request_that_is_cancelled_frees_its_row(engine: Engine) -> None:
    running = [engine.submit([n], options(max_new_tokens=500)) for n in range(4)]
    waiting = engine.submit([9], options())
    for request in running:
        assert request.next_chunk(60) is not None
    dropped = engine.submit([10], options())
    dropped.cancel()
    assert (dropped.result(WAIT).finish_reason, dropped.result().ids) == ("cancelled", ())
    running[2].cancel()
    assert list(waiting.result(WAIT).ids) == decoder().greedy([9], 20)
    assert running[2].result(WAIT).finish_reason == "cancelled"
    for request in running:
        request.cancel()
    for request in (running[0], running[1], running[3]):
        ids = request.result(WAIT).ids
        assert list(ids) == decoder().greedy([running.index(request)], len(ids))


def test_a_request_that_is_cancelled_takes_no_further_step(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in steps: the one that is computed while a token is handed out is the last one with the request."""
    steps: list[bool] = []
    start, at_cancel, ended = engine._start_step, [], threading.Event()

    def count(writing: list) -> Any:
        steps.append(any(slot.request.prompt == (4,) for slot in writing))
        return start(writing)

    def read(chunk: Any) -> None:
        if chunk.finish_reason is not None:
            ended.set()
        elif not at_cancel and threading.current_thread() is engine._thread:
            at_cancel.append(len(steps))
            request.cancel()

    monkeypatch.setattr(engine, "_start_step", count)
    other, request = (engine.submit([n], options(max_new_tokens=400, ignore_eos=True)) for n in (3, 4))
    request.listen(read)
    assert ended.wait(60) and len(other.result(WAIT).ids) == 400
    assert steps[at_cancel[0] - 1] and len(steps) > at_cancel[0] and not any(steps[at_cancel[0] :])


def test_many_threads(engine: Engine) -> None:
    results: dict[int, tuple[int, ...]] = {}

    def ask(n: int) -> None:
        results[n] = run(engine, [n, n + 1], **OPTIONS["sampled"]).ids

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(run(engine, [n, n + 1], **OPTIONS["sampled"]).ids == ids for n, ids in results.items())
    assert len(set(results.values())) == 16


def test_a_closed_engine() -> None:
    engine = Engine(decoder(), None, slots=1, max_length=2000)
    running = engine.submit([1], options(max_new_tokens=1900))
    waiting = engine.submit([2], options())
    running.next_chunk(60)
    engine.close()
    assert (running.result(WAIT).finish_reason, waiting.result(WAIT).finish_reason) == (
        "cancelled",
        "cancelled",
    )
    with pytest.raises(ConfigError, match="closed"):
        engine.submit([1])


def test_prefixes_are_read_once() -> None:
    prompt = np.random.default_rng(1).integers(0, 97, 200).tolist()
    other = [*prompt[:130], *prompt[:70]]
    with Engine(decoder(), None, slots=2, max_length=512, prefix_tokens=0) as plain:
        expected = [run(plain, ids).ids for ids in (prompt, other)]
    with Engine(decoder(), None, slots=2, max_length=512, prefix_tokens=256) as engine:
        assert run(engine, prompt).ids == expected[0] and engine.prefixes.hits == 0
        assert run(engine, prompt).ids == expected[0] and engine.prefixes.hits == 192
        assert run(engine, other).ids == expected[1] and engine.prefixes.hits == 192 + 128
        run(engine, list(range(97)) * 3)
        assert len(engine.prefixes) == 4
        assert run(engine, prompt).ids == expected[0]


@pytest.mark.parametrize("draft", [None, 0, 1])
def test_speculation_changes_no_token(engine: Engine, draft: int | None) -> None:
    """Of greedy and of sampled texts. A draft model of the same weights is always right, another one seldom is."""
    speculation = Speculation(4, None if draft is None else TinyDecoder(seed=draft))
    with Engine(decoder(), None, slots=3, max_length=512, speculation=speculation) as quick:
        pairs = [(prompt, changes) for prompt in PROMPTS[1:] for changes in OPTIONS.values()]
        requests = [quick.submit(prompt, options(max_new_tokens=50, **changes)) for prompt, changes in pairs]
        for (prompt, changes), request in zip(pairs, requests, strict=True):
            assert request.result(WAIT).ids == run(engine, prompt, max_new_tokens=50, **changes).ids


def test_ngram_drafts() -> None:
    ids = np.array(
        [[1, 2, 3, 9, 1, 2, 3, 0, 0, 0], [5, 6, 7, 6, 7, 0, 0, 0, 0, 0], [1, 2, 3, 4, 0, 0, 0, 0, 0, 0]]
    )
    tokens, count = ngram_drafts(ids.astype(np.int32), np.array([7, 5, 4], np.int32), 4)
    assert count.tolist() == [4, 2, 0]
    assert (tokens[0].tolist(), tokens[1, :2].tolist()) == ([9, 1, 2, 3], [6, 7])


def test_samples_of_one_seed_differ_and_come_again(engine: Engine) -> None:
    first = [r.result(WAIT).ids for r in engine.submit_all([3], options(n=3, temperature=1.0, seed=1))]
    again = [r.result(WAIT).ids for r in engine.submit_all([3], options(n=3, temperature=1.0, seed=1))]
    assert first == again and len(set(first)) == 3
    free = [r.result(WAIT) for r in engine.submit_all([3], options(n=2, temperature=1.0))]
    seed = free[1].seed
    assert [r.result(WAIT).ids for r in engine.submit_all([3], options(n=2, temperature=1.0, seed=seed))] == [
        one.ids for one in free
    ]


def test_logprobs_are_the_models_own(engine: Engine) -> None:
    result = run(engine, [1, 2, 3], logprobs=4, temperature=0.5, top_k=2, seed=0)
    hidden, _ = decoder().decode(
        decoder().params,
        np.array([[1, 2, 3, *result.ids[:-1]]]),
        np.arange(22)[None],
        decoder().new_cache(1, 22),
    )
    logs = np.asarray(jax.nn.log_softmax(decoder().logits(decoder().params, hidden[0, 2:])))
    for row, one in zip(logs, result.logprobs, strict=True):
        assert one.logprob == pytest.approx(row[one.token], abs=1e-4)
        assert [token for token, _ in one.top] == np.argsort(-row)[:4].tolist()
        assert [log for _, log in one.top] == pytest.approx(np.sort(row)[::-1][:4], abs=1e-4)


# -- texts ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer() -> Iterator[Engine]:
    tokenizer = byte_tokenizer()
    with Engine(TinyDecoder(tokenizer.vocab_size, seed=5), tokenizer, slots=2, max_length=512) as engine:
        yield engine


def text_options(**changes: Any) -> GenerationOptions:
    return GenerationOptions(max_new_tokens=60, eos_token_id=(256,)).merge(**changes)


def test_chunks_add_up_to_the_result(writer: Engine) -> None:
    request = writer.submit([70, 71], text_options(temperature=1.0, seed=0))
    chunks = list(request)
    result = request.result()
    assert "".join(chunk.text for chunk in chunks) == result.text != ""
    assert [token for chunk in chunks for token in chunk.ids] == list(result.ids)
    assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert request.next_chunk() is None


def test_a_stop_string_cuts_the_text(writer: Engine) -> None:
    whole = writer.submit([70, 71], text_options(temperature=1.0, seed=0)).result(WAIT).text
    stop = whole[10:13]
    request = writer.submit([70, 71], text_options(temperature=1.0, seed=0, stop=[stop, "never"]))
    result = request.result(WAIT)
    assert (result.text, result.stop, result.finish_reason) == (whole[: whole.index(stop)], stop, "stop")
    assert len(result.ids) < 60


def test_special_tokens_are_no_text(writer: Engine) -> None:
    bias = {"logit_bias": {257: 1e4}, "max_new_tokens": 3}
    assert writer.submit([70], text_options(**bias)).result(WAIT).text == ""
    shown = writer.submit([70], text_options(**bias, skip_special_tokens=False)).result(WAIT)
    assert shown.text == "<|im_end|>" * 3
    stopped = writer.submit([70], text_options(**bias, stop="<|im_end|>")).result(WAIT)
    assert (len(stopped.ids), stopped.finish_reason, stopped.stop) == (1, "stop", 257)


def test_bad_words_are_not_written(writer: Engine) -> None:
    changes: dict[str, Any] = {"temperature": 1.0, "seed": 2, "max_new_tokens": 200}
    letters = [
        letter
        for letter, _ in collections.Counter(
            writer.submit([70], text_options(**changes)).result(WAIT).text
        ).most_common(3)
        if letter.isascii()
    ]
    result = writer.submit([70], text_options(**changes, bad_words=letters)).result(WAIT)
    assert letters and not set(letters) & set(result.text)


@pytest.mark.parametrize(
    "constraint, matches",
    [
        (Choice(("yes", "no", "naïve中")), r"yes|no|naïve中"),
        (Regex(r"[0-9]{3}-[a-c]{2}"), r"[0-9]{3}-[a-c]{2}"),
        (
            JsonSchema(
                {
                    "type": "object",
                    "properties": {"a": {"enum": [1, "x"]}},
                    "required": ["a"],
                    "additionalProperties": False,
                }
            ),
            r'\{\s*"a"\s*:\s*(1|"x")\s*\}',
        ),
    ],
)
def test_constraints(writer: Engine, constraint: Any, matches: str) -> None:
    import re

    for seed in range(4):
        beside = writer.submit([80], text_options(temperature=1.0, seed=seed))
        result = writer.submit(
            [70],
            text_options(
                constraint=constraint,
                temperature=1.0,
                seed=seed,
                max_new_tokens=300,
                bad_words=["\t", "\n", "\r", " "],
            ),
        ).result(WAIT)
        assert re.fullmatch(matches, result.text), result
        assert result.finish_reason == "stop"
        assert (
            beside.result(WAIT).ids
            == writer.submit([80], text_options(temperature=1.0, seed=seed)).result(WAIT).ids
        )


def test_a_constraint_that_nothing_satisfies(writer: Engine) -> None:
    with pytest.raises(InputError, match="no text satisfies it"):
        writer.submit([70], text_options(constraint=Regex(r"[^\s\S]")))


# -- encoder-decoders ------------------------------------------------------------------------------------------------


def test_encoder_decoders() -> None:
    model = TinyEncoderDecoder(seed=2)

    @jax.jit
    def next_token(source: jax.Array, mask: jax.Array, ids: jax.Array, at: int) -> jax.Array:
        memory = model.encode(model.params, source, mask)
        cache = model.start_cache(model.params, memory, mask, ids.shape[1])
        hidden, _ = model.decode(model.params, ids, np.arange(ids.shape[1])[None], cache)
        return model.logits(model.params, hidden[0, at]).argmax()

    def expected(source: list[int], count: int) -> list[int]:
        padded, ids = np.zeros((1, 100), np.int32), np.zeros((1, 10), np.int32)
        padded[0, : len(source)], ids[0, 0] = source, 4
        for at in range(count):
            ids[0, at + 1] = next_token(padded, np.arange(100)[None] < len(source), ids, at)
        return ids[0, 1:].tolist()

    sources = [[3], [9, 8, 7], list(range(90)), [11, 12]]
    with Engine(model, None, slots=2, max_length=128, start_token=4) as engine:
        requests = [engine.submit(source, options(max_new_tokens=9)) for source in sources]
        for source, request in zip(sources, requests, strict=True):
            assert list(request.result(WAIT).ids) == expected(source, 9)
        beams = engine.submit(sources[1], options(num_beams=3, max_new_tokens=6))
        assert beams.result(WAIT).score is not None
        assert engine.room(90) == 127  # the source takes none of the text's tokens
    with pytest.raises(ConfigError, match="start_token"):
        Engine(model, None, max_length=64)


_AT_THE_END = """
import atexit
engine = None
atexit.register(lambda: print("running" if engine._thread.is_alive() else "ended", engine.closed))
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions
from tests.unit.nlp.generation.test_engine import decoder
engine = Engine(decoder(), None, slots=2, max_length=512)
engine.submit([1, 2, 3], GenerationOptions(max_new_tokens=5)).result()
engine.submit([1, 2, 3], GenerationOptions(max_new_tokens=400))
"""


def test_the_thread_has_ended_before_python_does():
    # In a program of jax it would abort the process.
    done = subprocess.run(
        [sys.executable, "-c", _AT_THE_END], capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["ended", "True"]
