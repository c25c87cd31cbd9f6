"""The engine: many requests at once in the rows of one batch, each with options of its own.

A thread of the engine runs the device: it puts requests into free rows, reads their prompts chunk by chunk, and makes a
step of all rows that write. It reads the tokens of a step while the next one is computed. Other threads submit requests
and read their chunks.
"""

from __future__ import annotations

import atexit
import collections
import dataclasses
import functools
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.core.errors import ConfigError, InputError
from nlp.generation.batch_state import BatchState
from nlp.generation.beam import BeamPrograms, BeamSearch, read_prompt
from nlp.generation.constraint import ConstraintVocabulary, TokenMatcher
from nlp.generation.options import GenerationOptions
from nlp.generation.prefix_cache import BLOCK, PrefixCache
from nlp.generation.programs import (
    DecoderFunctions,
    LayerFunctions,
    Programs,
    StepOutput,
    leaves_by_position,
    prompt_chunk,
)
from nlp.generation.request import Request, TokenLogprob, check_prompt
from nlp.generation.row_settings import RowSettings, make_row, table_size
from nlp.generation.speculation import Speculation
from nlp.generation.text_writer import TextWriter
from zoo.layers.encoder_decoder import EncoderDecoderSize

if TYPE_CHECKING:
    from framework.text.tokenizer import Tokenizer

_BUCKETS = (16, 64, 128, 256, 512, 1024, 2048)  # tokens of a prompt that a program reads at once


@dataclass
class _Slot:
    """A request in a row of the batch."""

    request: Request
    writer: TextWriter
    prompt: tuple[int, ...]
    """Of the decoder"""
    source: tuple[int, ...]
    """Of the encoder, where there is one"""
    context: tuple[int, ...]
    """What stands before the text"""
    settings: RowSettings
    limit: int
    """Tokens of prompt and text, at most"""
    read: int = 0
    """Tokens of the prompt in the cache"""
    length: int = 0
    """Tokens of prompt and text after all steps that were started, at most"""
    row: int = -1
    writing: bool = False
    search: BeamSearch | None = None


class Engine:
    """Generates texts for requests of any threads. Close it, or use it as a context.

    Args:
        model: A CausalDecoder or an encoder-decoder, in eval mode; or its pure functions.
        tokenizer: None: requests give tokens, and texts are empty.
        slots: Requests that are written at once; others wait.
        max_length: Tokens of a prompt and its text; by default what the model was made for.
        cache_dtype: Of keys and values. chunk: Tokens of a prompt between two steps of the other requests.
        prefix_tokens: Tokens of earlier prompts whose keys and values are stored for prompts that begin alike.
        speculation: What proposes several tokens a step.
        start_token: With which the texts of an encoder-decoder begin; by default what config.json says.

    Raises:
        ConfigError: an argument is out of range, or the model lacks what it needs.
    """

    def __init__(
        self,
        model: nn.Layer | DecoderFunctions,
        tokenizer: Tokenizer | None = None,
        slots: int = 1,
        max_length: int | None = None,
        *,
        cache_dtype: str | None = None,
        chunk: int = 512,
        prefix_tokens: int = 8192,
        speculation: Speculation | None = None,
        start_token: int | None = None,
    ) -> None:
        decoder = LayerFunctions(model, cache_dtype) if isinstance(model, nn.Layer) else model
        size = getattr(model, "size", None)
        longest = getattr(size, "longest_text", None)
        if start_token is None and isinstance(size, EncoderDecoderSize):
            start_token = size.start_id
        max_length = longest if max_length is None else max_length
        if slots < 1 or max_length is None or max_length < 2 or chunk not in _BUCKETS or prefix_tokens < 0:
            raise ConfigError(
                "an argument of the engine is out of range",
                where="Engine",
                received=f"slots {slots}, max_length {max_length}, chunk {chunk}, prefix_tokens {prefix_tokens}",
                allowed=f"slots from 1, max_length from 2, chunk one of {_BUCKETS}, prefix_tokens from 0",
            )
        self.max_length, self.slots, self.tokenizer = max_length, slots, tokenizer
        self._chunk = chunk
        self._encodes = decoder.encodes
        if self._encodes and start_token is None:
            raise ConfigError(
                "an encoder-decoder needs the token with which texts begin", fix="set start_token"
            )
        self._start = start_token
        self.programs = Programs(decoder, speculation)
        self._beams = BeamPrograms(decoder)
        self._batch = BatchState(self.programs, slots, max_length)
        blocks = not self._encodes and self.programs.draft is None and leaves_by_position(decoder.new_cache)
        self.prefixes = PrefixCache(prefix_tokens if blocks else 0)
        self._vocabularies: dict[tuple[int, ...], ConstraintVocabulary] = {}
        self._special: dict[int, bool] = {}
        self._waiting: collections.deque[_Slot] = collections.deque()
        self._rows: list[_Slot | None] = [None] * slots
        self._condition = threading.Condition()
        self._closed = self._cancellations = False
        self._pending: tuple[StepOutput, list[_Slot]] | None = None
        self._thread = threading.Thread(target=self._run, name="oar-generation", daemon=True)
        self._thread.start()
        # A thread that is in a program of jax while Python ends aborts the process.
        atexit.register(self.close)

    # -- of other threads -------------------------------------------------------------------------------------------

    def submit(
        self, ids: Sequence[int], options: GenerationOptions | None = None, sample: int = 0
    ) -> Request:
        """Puts a prompt into the queue.

        Args:
            ids: Tokens of the prompt; those that are too many go by `options.truncate_prompt`.
            sample: Which of several texts of one seed it is.

        Raises:
            InputError: the prompt is empty or too long, a token is not in the vocabulary, or a constraint cannot be
                followed. ConfigError: an option names a token beyond the vocabulary; the engine is closed.
        """
        options = GenerationOptions() if options is None else options
        slot = self._make_slot(tuple(map(int, ids)), options, sample)
        with self._condition:
            if self._closed:
                raise ConfigError("the engine is closed", where="Engine.submit")
            self._waiting.append(slot)
            self._condition.notify()
        return slot.request

    def submit_all(self, ids: Sequence[int], options: GenerationOptions) -> list[Request]:
        """`num_return_sequences` requests of one prompt; with beams one, whose further texts are in `others`."""
        if options.num_beams > 1:
            return [self.submit(ids, options)]
        if options.seed is None:
            options = dataclasses.replace(options, seed=secrets.randbits(32))
        return [self.submit(ids, options, sample) for sample in range(options.num_return_sequences)]

    def room(self, prompt: int) -> int:
        """Tokens that the text of a prompt of so many can have, at least 1."""
        return max(self.max_length - (1 if self._encodes else prompt), 1)

    @property
    def waiting(self) -> int:
        """Requests that have no row yet."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Requests that have a row."""
        return sum(slot is not None for slot in self._rows)

    @property
    def closed(self) -> bool:
        """Whether it takes no requests any more."""
        return self._closed

    def close(self) -> None:
        """Cancels what is not done and ends the thread."""
        atexit.unregister(self.close)
        with self._condition:
            self._closed = True
            self._condition.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _make_slot(self, ids: tuple[int, ...], options: GenerationOptions, sample: int) -> _Slot:
        size = self.programs.vocab_size
        beyond = [token for token in ids if not 0 <= token < size]
        if beyond:
            raise InputError(
                "a token of the prompt is not in the vocabulary",
                where="prompt",
                received=beyond[:10],
                allowed=f"numbers from 0 to {size - 1}",
            )
        source: tuple[int, ...] = ()
        if self._encodes:
            cut = check_prompt(len(ids), dataclasses.replace(options, max_length=None), self.max_length)
            assert self._start is not None
            source, ids, context = ids[cut:], (self._start,), ()
        else:
            cut = check_prompt(len(ids), options, self.max_length)
            ids = context = ids[cut:]
        warnings = (f"the first {cut:,} tokens of the prompt were cut off",) if cut else ()
        options = self._with_stop_tokens(options)
        words = self._bad_words(options)
        seed = secrets.randbits(32) if options.seed is None else options.seed
        limit = min(len(ids) + options.new_tokens(len(ids)), self.max_length)
        key, table = request_key(seed, sample), table_size(options, words)
        row = make_row(options, words, len(ids), limit, key, size, table)
        matcher = None
        if options.constraint is not None:
            matcher = self._vocabulary(options).matcher(options.constraint)
        request = Request(source or ids, options, seed, warnings, sample, wake=self._wake)
        writer = self._make_writer(request, context, limit - len(ids), matcher)
        return _Slot(request, writer, ids, source, context, row, limit, length=len(ids))

    def _make_writer(
        self, request: Request, context: Sequence[int], limit: int, matcher: TokenMatcher | None = None
    ) -> TextWriter:
        skip = request.options.skip_special_tokens
        decode = None if self.tokenizer is None else functools.partial(self._decode, skip)
        return TextWriter(request, decode, self._is_special, context, limit, matcher)

    def _with_stop_tokens(self, options: GenerationOptions) -> GenerationOptions:
        """A stop string that is a special token ends the text as a token: it never stands in the text."""
        if self.tokenizer is None:
            if options.stop or any(isinstance(word, str) for word in options.bad_words):
                raise ConfigError("stop strings and bad words need a tokenizer", where="Engine.submit")
            return options
        tokens = [self.tokenizer.id_of(stop) for stop in options.stop]
        special = tuple(one for one in tokens if one is not None and self._is_special(one))
        return dataclasses.replace(options, stop_token_ids=(*options.stop_token_ids, *special))

    def _bad_words(self, options: GenerationOptions) -> list[tuple[int, ...]]:
        """Words as tokens, a text both at the beginning of a text and behind a space."""
        words = []
        for word in options.bad_words:
            if not isinstance(word, str):
                words.append(word)
                continue
            assert self.tokenizer is not None
            for text in dict.fromkeys((word, f" {word.lstrip()}")):
                words.append(tuple(int(n) for n in self.tokenizer.segmenter.split(text).ids))
        return list(dict.fromkeys(word for word in words if word))

    def _vocabulary(self, options: GenerationOptions) -> ConstraintVocabulary:
        ends = options.end_tokens
        if ends not in self._vocabularies:
            if self.tokenizer is None:
                raise ConfigError("a constraint needs a tokenizer", where="Engine.submit")
            self._vocabularies[ends] = ConstraintVocabulary(self.tokenizer, self.programs.vocab_size, ends)
        return self._vocabularies[ends]

    def _decode(self, skip_special: bool, ids: Sequence[int]) -> str:
        assert self.tokenizer is not None
        if skip_special:
            ids = [token for token in ids if not self._is_special(token)]
        return self.tokenizer.decode(ids, skip_special=False)

    def _is_special(self, token: int) -> bool:
        if self.tokenizer is None:
            return False
        if token not in self._special:
            self._special[token] = self.tokenizer.is_special(token)
        return self._special[token]

    def _wake(self) -> None:
        """A request was cancelled."""
        with self._condition:
            self._cancellations = True
            self._condition.notify()

    # -- of the engine's thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._condition:
                while not (self._closed or self._waiting or self.running or self._pending):
                    self._condition.wait()
                if self._closed:
                    break
            try:
                self._turn()
            except Exception as error:  # whatever it is, it belongs to the requests, and the thread goes on
                self._fail(error)
        self._fail(None)

    def _turn(self) -> None:
        """What is done between two steps, and one step."""
        self._drop_cancelled()
        self._take_waiting()
        self._read_prompts()
        self._search_beams()
        writing = [slot for slot in self._rows if slot is not None and slot.writing]
        if any(slot.writer.matcher is not None for slot in writing):
            self._read_step()  # masks need the last token
            writing = [slot for slot in self._rows if slot is not None and slot.writing]
        later = None
        if any(slot.length < slot.limit for slot in writing):
            later = self._start_step(writing), writing
        self._read_step(started=later is not None)
        self._pending = later

    def _drop_cancelled(self) -> None:
        if not self._cancellations:
            return
        with self._condition:
            self._cancellations = False
            dropped = [slot for slot in self._waiting if slot.request.cancelled]
            for slot in dropped:
                self._waiting.remove(slot)
        for slot in dropped:
            slot.writer.cancel()
        for slot in self._rows:
            if slot is not None and slot.request.cancelled:
                slot.writer.cancel()
                self._free(slot, running=slot.writing)

    def _take_waiting(self) -> None:
        for row, occupant in enumerate(self._rows):
            if occupant is not None:
                continue
            with self._condition:
                if not self._waiting:
                    return
                slot = self._waiting.popleft()
                slot.row = row
                self._rows[row] = slot
            if slot.request.options.num_beams > 1:
                self._start_search(slot)
            else:
                self._start_row(slot)

    def _start_row(self, slot: _Slot) -> None:
        """Tokens and settings into the row, and what is stored of its prompt."""
        batch = self._batch
        batch.ensure_length(len(slot.prompt) + 1)
        batch.admit(slot.row, slot.prompt, slot.settings)
        if self._encodes:
            batch.encode(slot.row, slot.source)
        for number, block in enumerate(self.prefixes.find(slot.prompt, self._regime(len(slot.prompt)))):
            batch.write_block(slot.row, number * BLOCK, block)
            slot.read = slot.request.cached_tokens = (number + 1) * BLOCK

    def _read_prompts(self) -> None:
        """One chunk of the first prompt that is not read; rows whose prompts are read begin to write."""
        chunked = False
        for slot in self._rows:
            if slot is None or slot.writing or slot.search is not None:
                continue
            last = len(slot.prompt) - 1  # the step reads it
            if slot.read < last and not chunked:
                tokens = slot.prompt[slot.read : min(slot.read + self._chunk, last)]
                size = next(bucket for bucket in _BUCKETS if bucket >= len(tokens))
                self._batch.prefill(slot.row, prompt_chunk(tokens, size), slot.read, last + 1)
                slot.read += len(tokens)
                chunked = True
            if slot.read >= last:
                self._store_prefix(slot, slot.prompt[:last])
                self._batch.set_active(slot.row, True)
                slot.writing = True

    def _store_prefix(self, slot: _Slot, ids: Sequence[int]) -> None:
        for key, start in self.prefixes.missing(ids, self._regime(len(slot.prompt))):
            self.prefixes.add(key, self._batch.read_block(slot.row, start, BLOCK))

    def _regime(self, length: int) -> int:
        """See `RopeOptions.regime`."""
        regime = self.programs.decoder.regime
        return 0 if regime is None else regime(length)

    def _start_step(self, writing: list[_Slot]) -> StepOutput:
        width = self.programs.tokens_per_step
        self._batch.ensure_length(min(max(slot.length for slot in writing) + width, self.max_length))
        masks = self._masks(writing)
        for slot in writing:
            if slot.length > len(slot.prompt) and self._regime(slot.length) != self._regime(slot.length - 1):
                self._batch.read_again(slot.row, slot.length, self._chunk)
            slot.length = min(slot.length + width, slot.limit)
        return self._batch.step(masks)

    def _masks(self, writing: list[_Slot]) -> dict[int, np.ndarray]:
        """Of the rows with a constraint; one whose constraint takes too much ends with an error, out of `writing`."""
        masks = {}
        for slot in list(writing):
            if slot.writer.matcher is None:
                continue
            try:
                masks[slot.row] = slot.writer.matcher.allowed()
            except InputError as error:
                slot.request.put(error)
                self._free(slot, running=True)
                writing.remove(slot)
        return masks

    def _read_step(self, started: bool = False) -> None:
        """Hands out the tokens of the last step, while another one is `started`."""
        if self._pending is None:
            return
        (output, writing), self._pending = self._pending, None
        result: StepOutput = jax.device_get(output)
        for slot in writing:
            if self._rows[slot.row] is not slot:
                continue  # it ended on the host
            try:
                goes_on = self._write_tokens(slot, result)
            except InputError as error:
                slot.request.put(error)
                self._free(slot, running=True)
                continue
            following = self.programs.tokens_per_step if started else 0
            slot.length = min(len(slot.prompt) + slot.writer.count + following, slot.limit)
            if not goes_on:
                self._free(slot, running=bool(result.active[slot.row]))

    def _write_tokens(self, slot: _Slot, result: StepOutput) -> bool:
        """Whether the text goes on."""
        row, options = slot.row, slot.request.options
        for number in range(int(result.counts[row])):
            token = int(result.tokens[row, number])
            if token < 0:
                raise InputError(
                    "every token is banned",
                    where="generation",
                    received=f"token {slot.writer.count} of the text",
                    fix="relax bad_words, suppress_tokens, logit_bias, no_repeat_ngram_size or the constraint",
                )
            logprob = None
            if options.logprobs is not None:
                logs = result.logprobs
                pairs = zip(logs.top_ids[row, number], logs.top[row, number])
                top = tuple((int(one), float(log)) for one, log in pairs)[: options.logprobs]
                logprob = TokenLogprob(token, float(logs.token[row, number]), top)
            if not slot.writer.add(token, logprob):
                return False
        return True

    def _free(self, slot: _Slot, running: bool) -> None:
        """The row is free; `running`: on the device it still goes on."""
        if running:
            self._batch.set_active(slot.row, False)
        self._rows[slot.row] = None

    # -- beam search ------------------------------------------------------------------------------------------------

    def _start_search(self, slot: _Slot) -> None:
        length = 1 << (slot.limit - 1).bit_length()
        cache = self._batch.single_cache(length, slot.source)
        prompt = np.asarray(slot.prompt, np.int32)
        cache = read_prompt(self._beams, cache, prompt, length, self._chunk)
        slot.search = BeamSearch(self._beams, cache, length, prompt, slot.request.options, slot.settings)

    def _search_beams(self) -> None:
        for slot in self._rows:
            if slot is None or slot.search is None or slot.search.step():
                continue
            texts = slot.search.texts()
            request = slot.request
            for text in reversed(texts):  # the best one last, as the request's own
                one = Request(
                    request.prompt, request.options, request.seed, request.warnings, score=text.score
                )
                self._make_writer(one, slot.context, slot.limit).write_all(
                    text.ids, "stop" if text.complete else "length"
                )
                request.beams.insert(0, one.result())
            request.score = texts[0].score
            slot.writer.write_all(texts[0].ids, "stop" if texts[0].complete else "length")
            self._rows[slot.row] = None

    def _fail(self, error: Exception | None) -> None:
        """Ends all requests: with an error, or because the engine is closed."""
        with self._condition:
            slots = [*(slot for slot in self._rows if slot is not None), *self._waiting]
            self._waiting.clear()
        self._rows, self._pending = [None] * self.slots, None
        for slot in slots:
            if error is None:
                slot.writer.cancel()
            else:
                slot.request.put(error)
        if error is not None:
            self._batch = BatchState(self.programs, self.slots, self.max_length)  # donated arrays may be gone


def request_key(seed: int, sample: int) -> np.ndarray:
    """[2] uint32: the key of the draws of a request."""
    words = np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)
    root = jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
    return np.asarray(jax.random.key_data(jax.random.fold_in(root, sample)))
