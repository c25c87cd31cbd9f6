"""Texts and tokens of users to an engine and back: what `LanguageModel.generate` and `stream` do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from framework.core.errors import InputError
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions
from nlp.generation.request import Chunk, GenerationResult, Request
from nlp.generation.speculation import Speculation

if TYPE_CHECKING:
    from framework.text.tokenizer import Tokenizer
    from nlp.generation.exported import ExportedFunctions
    from zoo.layers.decoder_weights import AnyDecoder

Prompt = str | Sequence[int]
_MOST_SLOTS = 8


class PromptWriter:
    """Generates texts of prompts. Engines are made when they are first needed, and shared by threads.

    Args:
        folder: With generation_config.json, whose options are the defaults.
        speculation: Of all texts.
    """

    def __init__(
        self,
        model: AnyDecoder | ExportedFunctions,
        tokenizer: Tokenizer | None,
        folder: Path | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        self.model, self.tokenizer, self._speculation = model, tokenizer, speculation
        self.defaults, self.warnings = default_options(model, folder)
        self._engines: dict[int, Engine] = {}
        self._encodes = hasattr(model, "encode")

    def engine(self, slots: int) -> Engine:
        """That with so many rows."""
        if slots not in self._engines or self._engines[slots].closed:
            self._engines[slots] = Engine(self.model, self.tokenizer, slots, speculation=self._speculation)
        return self._engines[slots]

    def close(self) -> None:
        """Ends what runs, and frees the caches."""
        while self._engines:
            self._engines.popitem()[1].close()

    def generate(
        self, prompt: Prompt | Sequence[Prompt], **options: object
    ) -> GenerationResult | list[GenerationResult] | list[list[GenerationResult]]:
        """See `LanguageModel.generate`."""
        merged = self.defaults.merge(**options)
        several = not isinstance(prompt, str) and not all(isinstance(one, int | np.integer) for one in prompt)
        prompts = cast("Sequence[Prompt]", prompt) if several else [cast("Prompt", prompt)]
        tokens = [self.encode(one) for one in prompts]
        if not tokens:
            return []
        count = len(tokens) * (merged.num_return_sequences if merged.num_beams == 1 else 1)
        engine = self.engine(min(1 << (count - 1).bit_length(), _MOST_SLOTS))
        requests: list[list[Request]] = []
        try:
            for ids in tokens:
                requests.append(engine.submit_all(ids, merged))
            results = [self._results(group) for group in requests]
        except BaseException:  # also a key that interrupts: what runs is of no use any more
            for request in (one for group in requests for one in group):
                request.cancel()
            raise
        if merged.num_return_sequences == 1:
            single = [group[0] for group in results]
            return single if several else single[0]
        return results if several else results[0]

    def _results(self, group: list[Request]) -> list[GenerationResult]:
        results = [request.result() for request in group]
        results = list(group[0].beams) or results
        return [dataclasses.replace(one, warnings=(*self.warnings, *one.warnings)) for one in results]

    def stream(self, prompt: Prompt, **options: object) -> Iterator[Chunk]:
        """See `LanguageModel.stream`."""
        request = self.engine(1).submit(self.encode(prompt), self.defaults.merge(**options))
        try:
            yield from request
        finally:
            request.cancel()  # the reader left

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """The tokens of a prompt. A token that the tokenizer puts behind texts is left out before a text that goes on.

        Raises:
            InputError: it is neither text nor tokens, or there is no tokenizer.
        """
        if not isinstance(prompt, str):
            if not all(isinstance(one, int | np.integer) for one in prompt):
                raise InputError(
                    "a prompt is a text or a list of tokens", where="prompt", received=repr(prompt)[:100]
                )
            return tuple(int(one) for one in prompt)
        if self.tokenizer is None:
            raise InputError(
                "the model has no tokenizer",
                where="prompt",
                received="a text",
                allowed="a list of tokens",
                fix="put tokenizer.json into the folder of the model",
            )
        encoding = self.tokenizer.encode(prompt)
        ids, special = encoding.ids.tolist(), encoding.special
        while not self._encodes and len(ids) > 1 and special[len(ids) - 1]:
            ids.pop()
        begin = self.model.size.bos_id
        return tuple(ids) if ids or begin < 0 else (begin,)


def default_options(model: object, folder: Path | None) -> tuple[GenerationOptions, list[str]]:
    """The options of generation_config.json, with the end tokens of config.json where it names none."""
    options, warnings = (GenerationOptions(), []) if folder is None else GenerationOptions.from_folder(folder)
    ends = getattr(getattr(model, "size", None), "eos_ids", ())
    return (options if options.eos_token_id or not ends else options.merge(eos_token_id=ends)), warnings
