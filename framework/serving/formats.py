"""What a result is answered as: the JSON of `oar infer`, a drawing, or a file of one of the domain's formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from framework.core.disk import scratch_folder
from framework.core.errors import InputError, did_you_mean
from framework.core.types import JSON
from framework.serving.errors import NotAcceptableError
from framework.serving.models import ModelVersion
from framework.vision import image as vision_image
from framework.workflow.domain.capabilities import ResultFormat, ResultFormats
from framework.workflow.domain.predictor import AnyPredictor, ImagePredictor
from framework.workflow.domain.result import ImageResult, Result

JSON_TYPE, LINES_TYPE = "application/json", "application/x-ndjson"
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Of answers that come in pieces: proxies, such as nginx, are to keep none of them back."""
_TEXT = {".txt": "text/plain"}
_BINARY = {".png": "image/png", ".jpg": "image/jpeg"}


@dataclass(frozen=True)
class OutputFormat:
    """A format by name; `file` is None for JSON and for lines of JSON, which need no file."""

    name: str
    media_type: str
    file: ResultFormat | None = None

    @property
    def in_pieces(self) -> bool:
        """Whether it is written page by page."""
        return self.media_type == LINES_TYPE


_JSON, _LINES = OutputFormat("json", JSON_TYPE), OutputFormat("ndjson", LINES_TYPE)


def find_formats(version: ModelVersion, predictor: AnyPredictor) -> dict[str, OutputFormat]:
    """The formats of a model's results by name: JSON first."""
    formats = {"json": _JSON, "ndjson": _LINES}
    if not isinstance(predictor, ImagePredictor):
        return formats
    files = {"png": ResultFormat("image/png", ".png", _write_drawing)}
    for suffix in predictor.extra_suffixes:
        media_type = _BINARY.get(Path(suffix).suffix, "application/octet-stream")
        files[suffix.lstrip("_.")] = ResultFormat(media_type, suffix, _extra_writer(suffix))
    for suffix in predictor.text_suffixes:
        media_type = _TEXT.get(suffix, "text/plain")
        files[suffix.lstrip("_.")] = ResultFormat(media_type, suffix, _text_writer(predictor, suffix))
    if (of_domain := version.domain.capability(ResultFormats)) is not None:
        files |= of_domain.formats
    return formats | {name: OutputFormat(name, one.media_type, one) for name, one in files.items()}


def takes_any(named: str | None, accept: str | None) -> bool:
    """Whether a request asks for no format: most do not, and need no list of them."""
    return named is None and accept in (None, "", "*/*")


def choose_format(
    formats: Mapping[str, OutputFormat], named: str | None, accept: str | None
) -> OutputFormat | None:
    """The format that a request asks for; None, where any will do.

    Args:
        named: By `?format=`, which goes before the header.
        accept: The header `Accept`.

    Raises: NotAcceptableError, where the model writes none of those.
    """
    if named:
        for name, one in formats.items():
            if named.lower().lstrip(".") in (name, *(one.file.names if one.file else ())):
                return one
        raise NotAcceptableError(
            "the model's results have no such format",
            received=f"format={named[:100]}",
            allowed=", ".join(formats),
            fix=did_you_mean(named[:100], formats),
        )
    accepted = _accepted(accept or "*/*")
    for media_type in accepted:
        if media_type in ("*/*", "application/*"):
            return None
        for one in formats.values():
            others = one.file.media_types if one.file else ()
            if media_type in (one.media_type, *others) or (
                media_type.endswith("/*") and one.media_type.startswith(media_type[:-1])
            ):
                return one
    if not accepted:
        return None
    raise NotAcceptableError(
        "the model's results have none of these types",
        received=f"Accept: {accept}"[:200],
        allowed=", ".join(one.media_type for one in formats.values()),
    )


def _accepted(header: str) -> list[str]:
    """The media types of an Accept header, the most accepted first. Source: RFC 9110, 12.5.1."""
    ranked = []
    for entry in header.split(","):
        media_type, *parameters = (part.strip().lower() for part in entry.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if media_type and weight > 0:
            ranked.append((-weight, len(ranked), media_type))
    return [media_type for _, _, media_type in sorted(ranked)]


def to_line(result: Mapping[str, JSON] | Sequence[JSON]) -> bytes:
    """As `oar infer` writes a line of results.jsonl. Not over several lines: the encoder that does so is not in C, and
    takes three times as long.

    Raises: InputError: a number is NaN or infinite, which JSON has no words for.
    """
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(
            "the result has a number that is NaN or infinite, which JSON cannot write",
            fix="look at what the model gives for this input, in float32 if it runs in float16; of tensors "
            'POST to /v2/models/<name>/infer with "parameters": {"binary_data_output": true}',
        ) from None
    return (text + "\n").encode("utf-8", "backslashreplace")


class ResultResponse(Response):
    """JSON of results, as a line. Raises: as `to_line`."""

    media_type = JSON_TYPE

    def render(self, content: Mapping[str, JSON] | Sequence[JSON]) -> bytes:
        return to_line(content)


def write(results: Sequence[Result], source: str, output: ResultFormat) -> bytes:
    """The file of the results of one source.

    Raises: NotAcceptableError, where there is a file for each page and there are several.
    """
    with scratch_folder("oar-") as folder:
        path = folder / f"result{output.suffix}"
        output.write(results, source, path)
        return path.read_bytes()


def _only(results: Sequence[Result]) -> ImageResult:
    if len(results) != 1:
        raise NotAcceptableError(
            "this format has a file for each page",
            received=f"{len(results)} pages",
            fix="send one page, or ask for ndjson",
        )
    only = results[0]
    assert isinstance(only, ImageResult)  # of an ImagePredictor
    return only


def _write_drawing(results: Sequence[Result], source: str, path: Path) -> None:
    vision_image.write(path, _only(results).draw())


def _extra_writer(suffix: str) -> Callable[[Sequence[Result], str, Path], object]:
    return lambda results, source, path: _only(results).write_extra(suffix, path)


def _text_writer(predictor: AnyPredictor, suffix: str) -> Callable[[Sequence[Result], str, Path], object]:
    def write_text(results: Sequence[Result], source: str, path: Path) -> None:
        assert isinstance(predictor, ImagePredictor)
        path.write_text(predictor.to_text(_only(results), suffix), encoding="utf-8", newline="\n")

    return write_text
