"""Fill-mask: which tokens a masked language model puts in the place of a text's mask tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from framework.core.errors import InputError
from framework.core.types import JSON
from framework.text.masking import MaskTokens
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from nlp.packing import pack_tokens
from nlp.processors import Outputs, ProcessorContext, TextProcessor, tokenizer_of

_ALL = 1 << 30


@dataclass(frozen=True)
class Candidate:
    """A token for a mask, as it stands in a text, with its probability in [0, 1].

    `sequence` is the text with the token in this place; the other mask tokens stay.
    """

    token: str
    token_id: int
    score: float
    sequence: str

    def to_dict(self) -> dict[str, JSON]:
        return {**vars(self), "score": round(self.score, 6)}


@dataclass(frozen=True)
class Mask:
    """A mask token, from character `start` to the one before `end`, and the candidates for it, best first."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]

    def to_dict(self) -> dict[str, JSON]:
        return {**vars(self), "candidates": [one.to_dict() for one in self.candidates]}


@dataclass(frozen=True)
class FilledMask:
    """The mask tokens of a text, in order."""

    text: str
    masks: tuple[Mask, ...]

    def to_dict(self) -> dict[str, JSON]:
        return {**vars(self), "masks": [mask.to_dict() for mask in self.masks]}


class MaskProcessor(TextProcessor):
    """Of "candidates" and "scores" [K, C].

    A text that is too long for the program is cut to windows around its masks, and one with more than K masks takes
    several windows. Each token is predicted while the others are masked.

    Raises:
        ConfigError: no transform has a tokenizer, or it has no mask token.
        InputError: for a text without a mask token, or for a pair of texts.
    """

    def __init__(self, context: ProcessorContext, max_positions: int) -> None:
        tokenize, self.tokenizer = tokenizer_of(context)
        self.mask_id, self.max_positions = self.tokenizer.mask_id, max_positions
        self.limit = min(tokenize.max_length, context.limit)
        uncut = replace(tokenize, max_length=_ALL)
        transforms = [one for one in context.transforms if not isinstance(one, MaskTokens)]
        super().__init__(
            replace(context, transforms=tuple(uncut if one is tokenize else one for one in transforms))
        )

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        whole = self.tokenize_sample(sample)
        assert whole.ids is not None
        masks = np.flatnonzero(whole.ids == self.mask_id)
        if sample.pair is not None or not len(masks):
            mask = self.tokenizer.roles["mask"]
            raise InputError(
                "there is no mask token to fill" if sample.pair is None else "masks are filled in one text",
                where=sample.id,
                received=repr(sample.text[:80]) if sample.pair is None else "a pair of texts",
                allowed=f"a text with {mask} in the place of a word, or several of them",
            )
        before = next(place for place, (item, _) in enumerate(self.tokenizer.single) if item == "A")
        behind = len(self.tokenizer.single) - 1 - before
        count, room = len(whole.ids) - before - behind, self.limit - before - behind
        # (first token, masks) of the text without what surrounds it
        windows: list[tuple[int, list[int]]] = []
        for mask in (int(mask) - before for mask in masks):
            # In a text that is longer, a mask sees a quarter of the window before it at least, and a quarter behind it.
            first, of_window = windows[-1] if windows else (0, [])
            if (
                not of_window
                or len(of_window) == self.max_positions
                or mask >= first + (room if first + room >= count else room * 3 // 4)
            ):
                windows.append((max(0, min(mask - room // 4, count - room)), [mask]))
            else:
                of_window.append(mask)
        return [self._window(whole, first, of_window, before, behind, room) for first, of_window in windows]

    @staticmethod
    def _window(
        whole: TextSample, first: int, masks: list[int], before: int, behind: int, room: int
    ) -> TextSample:
        assert whole.ids is not None
        length = len(whole.ids)
        end = min(before + first + room, length - behind)
        positions = np.r_[0:before, before + first : end, length - behind : length]
        rows = {name: getattr(whole, name)[positions] for name in ("ids", "type_ids", "offsets", "word_ids")}
        return whole.replace(**rows, positions=np.asarray(masks, np.int32) - first + before)

    def pack(self, part: TextSample) -> dict[str, np.ndarray]:
        return pack_masked(part, self.max_positions)

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> FilledMask:
        masks = []
        for window, rows in zip(parts, outputs):
            assert window.positions is not None and window.offsets is not None
            for position, ids, scores in zip(window.positions, rows["candidates"], rows["scores"]):
                start, end = map(int, window.offsets[position])
                best = zip(ids[: self.context.top].tolist(), scores.tolist())
                candidates = (_candidate(self.tokenizer, sample.text, start, end, *one) for one in best)
                masks.append(Mask(start, end, tuple(candidates)))
        return FilledMask(sample.text, tuple(masks))


def _candidate(
    tokenizer: Tokenizer, text: str, start: int, end: int, token_id: int, score: float
) -> Candidate:
    token = tokenizer.decode([token_id], skip_special=False).strip()
    if token.startswith("##"):  # goes on with the word before
        return Candidate(token, token_id, score, text[:start].rstrip() + token[2:] + text[end:])
    return Candidate(token, token_id, score, text[:start] + token + text[end:])


def pack_masked(sample: TextSample, count: int) -> dict[str, np.ndarray]:
    """The tokens of a sample and "positions" [count] int32 of those that are guessed, the first token behind the last.

    Raises: InputError, where there are more.
    """
    assert sample.positions is not None
    if len(sample.positions) > count:
        raise InputError(
            "more tokens are hidden than the task has room for",
            where=sample.id,
            received=len(sample.positions),
            allowed=f"max_positions of the task: {count}",
            fix="give MaskTokens the same max_positions",
        )
    positions = np.zeros(count, np.int32)
    positions[: len(sample.positions)] = sample.positions
    return {**pack_tokens(sample), "positions": positions}
