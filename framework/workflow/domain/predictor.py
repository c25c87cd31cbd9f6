"""Predictors: the base classes of what `predictor(...)` of a domain gives."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from framework.core.errors import ConfigError, InputError, OarError
from framework.core.process import check_process
from framework.vision import image as vision_image
from framework.vision.image_pages import count_note
from framework.vision.windowed import WindowedImage, open_windows
from framework.workflow.domain.result import ImageResult, Result, TextResult

ImageSource: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO | np.ndarray
"""And a PIL image, which this package does not import."""
Text: TypeAlias = str | tuple[str, str]
Row: TypeAlias = Mapping[str, object]

S = TypeVar("S")
Item = TypeVar("Item")
R = TypeVar("R")
R_contra = TypeVar("R_contra", bound=ImageResult, contravariant=True)
I = TypeVar("I", bound=ImageResult)  # noqa: E741


class ImageItem(NamedTuple):
    """An image [H, W, 3] uint8 RGB, where it comes from ("" if unknown), and the number of its page or frame from 1.

    `warnings` say what of the source is not in the image. Of a huge image that is read by `windows`, the image is its
    overview. `time` of a frame: the seconds since the first one of its video; None where only its rate is known.
    """

    image: np.ndarray
    source: str = ""
    number: int = 1
    warnings: tuple[str, ...] = ()
    windows: WindowedImage | None = None
    time: float | None = None


class Predictor(ABC, Generic[S, Item, R]):
    """Makes results of type R of sources of type S. Safe to call from several threads.

    A source is read into one item, which has one result. What reads many items of one source has a verb of its own.

    Attributes:
        independent: Whether the result of an item depends on no other item, so that items of several clients can stand
            in one stream.
        engine_warnings: What the files of its results say of its engines, such as of int8 layers that are slower.
    """

    independent: bool = True
    engine_warnings: tuple[str, ...] = ()

    @overload
    def predict(self, source: list[S]) -> list[R]: ...
    @overload
    def predict(self, source: S) -> R: ...
    def predict(self, source: S | list[S]) -> R | list[R]:
        """The result of a source, or those of a list of sources. Raises: InputError, where one cannot be read."""
        check_process()
        if isinstance(source, list):
            return list(self.predict_stream(self.read(one) for one in source))
        return next(iter(self.predict_stream(iter([self.read(source)]))))

    @abstractmethod
    def read(self, source: S) -> Item:
        """The item that the model takes. Raises: InputError, where the source cannot be read."""

    @abstractmethod
    def predict_stream(self, items: Iterable[Item]) -> Iterator[R]:
        """One result for each item, in order. Memory does not grow with their number."""


AnyPredictor: TypeAlias = "Predictor[Any, Any, Any]"
"""A predictor of a model of any domain: what it takes and makes is known when it is there."""


class ResultWriter(Protocol[R_contra]):
    """One file for all results, which `--save_results` asks for: `head`, the `text` of each result, `tail`.

    `number` counts the images or frames that were read, from 0.
    """

    @property
    def name(self) -> str: ...
    @property
    def head(self) -> str: ...
    @property
    def tail(self) -> str: ...

    def text(self, result: R_contra, number: int) -> str:
        """What to write of one result."""
        ...


class EventWriter(ResultWriter[R_contra], Protocol):
    """The file of what happens in a video; `tail` and `summary` are asked for behind the last frame."""

    def summary(self) -> list[str]:
        """What the report says of it, a sentence each."""
        ...


class ImagePredictor(Predictor[ImageSource, ImageItem, I]):
    """What all predictors of images and videos keep to.

    Attributes:
        extra_suffixes: Those of its results.
        text_suffixes: Of the texts that are written of each image besides, drawn or not: see `to_text`.
        reads_windows: Whether huge TIFF images are read by windows, as the model looks at windows of an image.
        empty_note: What is said of images in which nothing was found, such as the score that none has; "" nothing.
        value_range: Black and white of images of more than 8 bits, as `framework.vision.image.read` takes it.
    """

    extra_suffixes: ClassVar[tuple[str, ...]] = ()
    text_suffixes: tuple[str, ...] = ()
    empty_note: str = ""
    value_range: tuple[float, float] | None = None
    reads_windows: bool = False

    def read(self, source: ImageSource) -> ImageItem:
        """An image of a path, of bytes, a file, an array or a PIL image."""
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        windows = open_windows(source, self.value_range) if self.reads_windows else None
        if windows is not None:
            return ImageItem(windows.overview(), label, windows=windows)
        return ImageItem(vision_image.read(source, value_range=self.value_range), label)

    def read_all(self, source: ImageSource) -> Iterator[ImageItem]:
        """The items of an image file: by default its first page, with a warning where there are more."""
        item = self.read(source)
        note = count_note(source) if item.windows is None else None
        yield item if note is None else item._replace(warnings=(*item.warnings, note))

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[I]:
        """As `predict_stream`, of the frames of one video of so many frames a second."""
        return self.predict_stream(frames)

    def to_text(self, result: I, suffix: str) -> str:
        """What the file of one of the `text_suffixes` says of a result."""
        raise ValueError(f"{type(self).__name__} writes no text that ends in {suffix}")

    def event_writer(self, stem: str, stride: int = 1) -> EventWriter[I] | None:
        """The file of what happens in a video, such as objects that cross a line; None where nothing is counted.

        Args:
            stride: Of each `stride` frames the first is read.
        """
        return None

    def result_writer(self, stem: str, files: Sequence[str] | None = None) -> ResultWriter[I]:
        """The one file for the results of these images, or of a video, which has no `files`.

        Raises:
            ConfigError: there is none.
        """
        raise ConfigError(
            "this domain has no single file for all results",
            received="--save_results",
            fix="leave it out: there is a JSON file for each image, and a line for each frame of a video",
        )


class VisionPredictor(ImagePredictor[I]):
    """Base of the predictors of images and videos that are called with an image, or with a list of images."""

    __call__ = Predictor.predict


class RowPredictor(Predictor[Row, Row, R]):
    """Base of the predictors of rows of tables. A row is a mapping of columns to what stands in them."""

    __call__ = Predictor.predict

    def read(self, source: Row) -> Row:
        """Raises: InputError, where this is no row."""
        if not isinstance(source, Mapping):
            raise InputError(
                "this is no row",
                received=type(source).__name__,
                allowed='a mapping such as {"column": "value"}',
            )
        return source

    @abstractmethod
    def read_file(self, path: Path) -> Iterator[Row | OarError]:
        """The rows of a file; in the place of a line that is none stands the error. Raises: OarError, where the file is
        none of rows."""

    @abstractmethod
    def predict_attempts(self, rows: Iterable[Row | OarError]) -> Iterator[Result | OarError]:
        """One result for each row, in order; in the place of a row that cannot be read stands the error, and an error
        among the rows stays where it is."""


class LanguagePredictor(Predictor[Text, Text, R]):
    """Base of the predictors of texts. A pair of texts is a tuple of two."""

    __call__ = Predictor.predict

    @property
    @abstractmethod
    def pairs(self) -> bool:
        """Whether it takes pairs of texts only, so that a line of a file holds two with a tab between them."""

    def read(self, source: Text) -> Text:
        return source

    def count_tokens(self, text: Text) -> int:
        """Tokens that the model reads of a text; 0 where it reads none. Raises: OarError: it cannot be read."""
        return 0

    @abstractmethod
    def predict_attempts(self, texts: Iterable[Text]) -> Iterator[TextResult | OarError]:
        """One result for each text, in order; in the place of a text that cannot be read stands the error."""
