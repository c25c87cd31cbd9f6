"""The routes of PaddleX's servers that models of a domain answer: a capability, see `capabilities.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np

from framework.core.types import JSON
from framework.export import Artifact
from framework.workflow.domain.predictor import AnyPredictor
from framework.workflow.domain.result import Result

EncodeImage: TypeAlias = Callable[[np.ndarray], str]
"""Base64 of a file of an image [H, W, 3] uint8 RGB."""


class ReadFile(Protocol):
    """Reads a whole file, where the predictor's results of its pages are not what a route answers with."""

    def __call__(
        self, predictor: AnyPredictor, data: bytes, options: Mapping[str, object], /
    ) -> Sequence[Result]:
        """The results of the pages of a PDF or an image. Raises: OarError, where it cannot be read."""
        ...


class WriteResult(Protocol):
    """What a route answers with, without `dataInfo`, which is the same for all."""

    def __call__(
        self, results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None, /
    ) -> Mapping[str, JSON]:
        """The `result` of an answer.

        Args:
            results: Of the pages of the file; one of an image.
            fields: Of the request, as they came.
            encode: For drawings; None: the request wants none.
        """
        ...


@dataclass(frozen=True)
class PaddleXRoute:
    """A route of PaddleX's basic serving, at which `POST` takes JSON.

    A field of a request is an option of the predictor by its name in snake_case, or one of `fields`. A field that is
    neither is named in the answer's `warnings`.

    Attributes:
        path: Of the address, with its slash.
        source: The field that holds the file in base64: an "image", or a "file" of several pages.
        accepts: Whether a model can answer.
        write: The answer of results.
        fields: Fields, and the options that they are called here.
        read: In the place of the predictor, page by page.
        options: Those that `read` takes, a dataclass; None: those of the predictor.
        other_fields: What `write` reads itself.
        convert: Of fields that may be more here than an option can: the option's value.
    """

    path: str
    source: Literal["image", "file"]
    accepts: Callable[[Artifact], bool]
    write: WriteResult
    fields: Mapping[str, str] = field(default_factory=dict)
    read: ReadFile | None = None
    options: type | None = None
    other_fields: tuple[str, ...] = ()
    convert: Mapping[str, Callable[[JSON], JSON]] = field(default_factory=dict)


@dataclass(frozen=True)
class PaddleXRoutes:
    """What the models of a domain answer on the routes of PaddleX's servers."""

    routes: tuple[PaddleXRoute, ...]
