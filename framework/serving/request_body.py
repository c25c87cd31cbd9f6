"""What a request to predict says: files, addresses or texts, options, and what the answer is to be."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from fastapi import Request
from starlette.datastructures import UploadFile

from framework.core.bounded import check_mapping, parse_json
from framework.core.types import JSON
from framework.serving.errors import BadRequestError, ForbiddenError, TooLargeError, UnsupportedError
from framework.serving.fetch import fetch
from framework.serving.forms import read_form
from framework.serving.images import Upload
from framework.serving.models import ModelStore, ServedModel
from framework.serving.request_tables import Envelope, TensorTable, holds_numbers, holds_objects, to_rows
from framework.serving.settings import Limits
from framework.workflow.domain.predictor import ImagePredictor, Text
from framework.workflow.domain.request_options import truth_value

_FORM = "application/x-www-form-urlencoded"
_FILES = (
    "",
    "application/octet-stream",
    "binary/octet-stream",  # of what S3 stores without a type
    "application/pdf",
    _FORM,
)  # with --data-binary curl calls a file a form
_FIELD = re.compile(rb"(?:image|file|url|text)=")
# What clients send JSON as that were not told its type.
_UNTYPED = ("", "application/octet-stream", "binary/octet-stream", _FORM)
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*[\"}]")  # no file of an image or of pages begins so
_SOURCES = ("image", "file", "url", "text")
_NAME_LENGTH = 200
_DATA_URL = re.compile(r"data:[\w/+.;=-]*;base64,", re.ASCII | re.IGNORECASE)
_ENDS = str.maketrans("", "", "\r\n\t")


@dataclass
class PredictRequest:
    """What is to be predicted.

    Attributes:
        inputs: Files and texts, in order.
        several: Whether they came as a list, so that results do too.
        envelope: What one answer holds the results of all below, as clients of TensorFlow Serving read it; it is an
            error where one sample has one. None: each has a line.
        batched: Whether the samples came as a list, and not as one.
        tensors: Numbers for the model's program, in the place of inputs.
        options: Of the predictor.
        format: By name; None: what the header `Accept` says.
        timeout: Seconds; None: what the limits say.
        drawing: Whether JSON of images has the drawing, too.
    """

    inputs: list[Upload | Text] = field(default_factory=list)
    several: bool = False
    envelope: Envelope | None = None
    batched: bool = True
    tensors: TensorTable | None = None
    options: dict[str, JSON] = field(default_factory=dict)
    format: str | None = None
    timeout: float | None = None
    drawing: bool = False


def clean_name(name: object) -> str:
    """The last part of a file's name as a client gives it, of signs that can be printed."""
    last = re.split(r"[/\\]", str(name or ""))[-1]
    return "".join(sign for sign in last if sign.isprintable())[:_NAME_LENGTH]


async def read_request(request: Request, model: ServedModel, store: ModelStore) -> PredictRequest:
    """Read the query and the body, by its Content-Type: multipart/form-data, application/json, text/plain, or a file as
    it is.

    Raises:
        BadRequestError: it cannot be read. UnsupportedError: another type. ForbiddenError: an address, where the server
        fetches none. TooLargeError: more inputs than the limits say.
    """
    work = PredictRequest()
    query = dict(request.query_params)
    _take_settings(work, query)
    work.options |= query
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        await _read_form(request, work, store.settings.limits)
    elif await _is_json(request, kind, model):
        body = await request.body()
        entries = await model.in_thread(lambda: read_object(body))
        await _read_entries(entries, work, model, store)
    elif kind == _FORM and _FIELD.match(body := await request.body()):
        fields = dict(parse_qsl(body.decode("utf-8", "replace")))
        await _read_entries(dict[str, JSON](fields), work, model, store)
    elif kind == "text/plain":
        work.inputs.append(_decode_text(await request.body()))
    elif kind in _FILES or kind.startswith("image/"):
        work.inputs.append(Upload(await request.body(), clean_name(request.query_params.get("name"))))
    else:
        raise UnsupportedError(
            "the type of the body is not read",
            received=f"Content-Type: {kind[:100]}",
            allowed="multipart/form-data, application/json, text/plain, image/*, application/pdf, "
            "application/octet-stream",
        )
    if not work.inputs and work.tensors is None:
        raise _nothing()
    if any(isinstance(one, Upload) and not one.data for one in work.inputs):
        raise BadRequestError("the file is empty", received="0 bytes")
    return work


async def _is_json(request: Request, kind: str, model: ServedModel) -> bool:
    """Whether a body is JSON by its type, or by its beginning where its type says nothing: curl's `-d` calls all a
    form."""
    if kind in ("application/json", "text/json") or kind.endswith("+json"):
        return True
    untyped = kind in _UNTYPED or (kind == "text/plain" and isinstance(model.predictor, ImagePredictor))
    return untyped and _OBJECT.match(await request.body()) is not None


def read_object(body: bytes) -> Mapping[str, JSON]:
    """The object of a JSON body. Raises: BadRequestError, where it is none, or too deep."""
    entries = parse_json(body, "the request", "body", BadRequestError)
    return check_mapping(entries, "the request", "body", BadRequestError)


def _take_settings(work: PredictRequest, entries: dict[str, str] | dict[str, JSON]) -> None:
    """Take what is no option of the predictor out of the entries."""
    named, timeout = entries.pop("format", None), entries.pop("timeout", None)
    entries.pop("name", None)
    if (drawing := entries.pop("drawing", None)) is not None:
        work.drawing = read_flag(drawing, "drawing")
    if named is not None:
        work.format = str(named)
    if timeout is None:
        return
    try:
        if isinstance(timeout, str | int | float) and not isinstance(timeout, bool):
            work.timeout = float(timeout)
    except ValueError:
        pass
    if work.timeout is None or not 0 < work.timeout < 1e6:
        raise BadRequestError(
            "the timeout is no number of seconds", received=str(timeout)[:50], allowed="above 0"
        )


def read_flag(value: JSON, where: str) -> bool:
    """A truth value of JSON or of a query. Raises: BadRequestError."""
    if (truth := truth_value(value)) is not None:
        return truth
    raise BadRequestError(
        "this is no truth value", where=where, received=str(value)[:50], allowed="true or false"
    )


async def _read_form(request: Request, work: PredictRequest, limits: Limits) -> None:
    form = await read_form(request, limits)
    try:
        texts: dict[str, JSON] = {}
        for key, value in form.multi_items():
            if isinstance(value, UploadFile) and key == "options":  # JSON that a browser sends as a Blob
                texts[key] = _decode_text(await value.read())
            elif isinstance(value, UploadFile):
                work.inputs.append(Upload(await value.read(), clean_name(value.filename)))
            else:
                texts[key] = value
        work.several = len(work.inputs) > 1
        for key in ("image", "file"):  # a part without a file's name
            encoded = texts.pop(key, None)
            if isinstance(encoded, str):
                work.inputs.append(Upload(decode_base64(encoded), clean_name(texts.get("name"))))
        text, pair = texts.pop("text", None), texts.pop("pair", None)
        if isinstance(text, str):
            work.inputs.append((text, pair) if isinstance(pair, str) else text)
        options = texts.pop("options", None)
        _take_settings(work, texts)
        work.options |= texts
        if isinstance(options, str):
            work.options |= read_object(options.encode())
    finally:
        await form.close()


async def _read_entries(
    entries: Mapping[str, JSON], work: PredictRequest, model: ServedModel, store: ModelStore
) -> None:
    rest = dict(entries)
    items = _take_items(rest, work, model)
    name = rest.get("name")
    _take_settings(work, rest)
    options = rest.pop("options", None) or {}
    if not isinstance(options, dict):
        raise BadRequestError("options must be an object", received=type(options).__name__)
    one = {key: rest.pop(key) for key in (*_SOURCES, "pair") if key in rest}
    work.options |= {**rest, **options}
    if work.tensors is not None:
        if work.options or one:
            raise BadRequestError(
                "tensors of the program stand alone: options are of files and texts",
                received=", ".join([*work.options, *one])[:200],
            )
        return
    if items is None:
        if not one:
            raise _nothing(", ".join(sorted(map(str, entries)))[:200] or "an empty object")
        work.inputs.append(await _read_entry({**one, "name": name}, model, store))
        return
    if not isinstance(items, list) or one:
        raise BadRequestError(
            "inputs must be a list, and stand alone",
            received=type(items).__name__,
            allowed='{"inputs": [{"image": …}, {"text": …}]}',
        )
    if len(items) > store.settings.limits.items:
        raise TooLargeError(
            "the request has too many inputs",
            received=len(items),
            allowed=f"at most {store.settings.limits.items}",
        )
    work.several = True
    for item in items:
        entry = item if isinstance(item, dict) else {"text": item} if isinstance(item, str) else None
        if entry is None:
            raise BadRequestError(
                "an input must be an object or a text", received=type(item).__name__, allowed='{"image": …}'
            )
        work.inputs.append(await _read_entry(entry, model, store))


def _take_items(rest: dict[str, JSON], work: PredictRequest, model: ServedModel) -> JSON:
    """Take the inputs that stand in one list, or in columns, out of the entries; None, where none do."""
    items = rest.pop("inputs", None)
    if isinstance(items, dict | str) or (holds_numbers(items) and not holds_objects(items)):
        work.envelope = "outputs"
    elif items is not None:
        return items
    elif isinstance(images := rest.get("images"), list):
        del rest["images"]
        return [_read_instance(one, model) for one in images]
    elif isinstance(items := rest.get("instances"), list):
        del rest["instances"]
        work.envelope = "predictions"
    else:
        return None
    rest.pop("signature_name", None)
    if holds_numbers(items):
        work.tensors = TensorTable(work.envelope, items)
        return None
    if work.envelope == "outputs":
        items, work.batched = to_rows(items)
    assert isinstance(items, list)
    return [_read_instance(one, model) for one in items]


def _nothing(received: str | None = None) -> BadRequestError:
    return BadRequestError(
        "there is nothing to predict",
        received=received,
        allowed='a file, {"image": base64}, {"url": address}, {"text": text}, or {"inputs": [...]} of several',
        fix="curl -F file=@image.png …",
    )


def _read_instance(instance: JSON, model: ServedModel) -> JSON:
    """As an entry of `inputs`: `{"b64": …}`, also as what stands below `image`, `data` or another single name, or a
    text alone; of several names each may have one."""
    if isinstance(instance, dict) and len(instance) > 1:
        return {name: _unwrap(value) for name, value in instance.items()}
    while isinstance(instance, dict) and len(instance) == 1 and not instance.keys() & {"text", "url"}:
        (instance,) = instance.values()
    if isinstance(instance, str) and isinstance(model.predictor, ImagePredictor):
        return {"image": instance}
    return instance


def _unwrap(value: JSON) -> JSON:
    return value["b64"] if isinstance(value, dict) and value.keys() == {"b64"} else value


async def _read_entry(entry: Mapping[str, JSON], model: ServedModel, store: ModelStore) -> Upload | Text:
    keys = [key for key in _SOURCES if entry.get(key) is not None]
    unknown = set(entry) - {*_SOURCES, "pair", "name"}
    if len(keys) != 1 or unknown:
        raise BadRequestError(
            "an input has one source",
            received=", ".join(sorted(map(str, entry)))[:200] or "an empty object",
            allowed="one of image, file, url, text; and name, pair",
        )
    (key,), name = keys, clean_name(entry.get("name"))
    value = entry[key]
    if not isinstance(value, str):
        raise BadRequestError(f"{key} must be a text", received=type(value).__name__)
    if key == "text":
        pair = entry.get("pair")
        return (value, pair) if isinstance(pair, str) else value
    if key == "url":
        settings = store.settings
        if not settings.allow_url:
            raise ForbiddenError(
                "this server fetches no addresses",
                received=value[:200],
                fix="send the file, or start the server with --allow_url",
            )
        data = await model.in_thread(
            lambda: fetch(value, settings.limits.body_bytes, settings.allow_private_url)
        )
        return Upload(data, name or clean_name(value.partition("?")[0]))
    return Upload(await model.in_thread(lambda: decode_base64(value)), name)


def decode_base64(text: str) -> bytes:
    """The bytes of a base64 text, with or without the head of a data URL, whose letters may be escaped as in each URL,
    ends of lines, and `=` at its end, which some programs add to a text of any length.

    A blank is a plus that went through a form. Raises: BadRequestError.
    """
    text = text.strip()
    head = _DATA_URL.match(text)
    plain = text if head is None else unquote(text[head.end() :])  # RFC 2397
    plain = plain.translate(_ENDS).replace(" ", "+").rstrip("=")
    if len(plain) % 4 > 1:
        plain += "=" * (-len(plain) % 4)
    try:
        return base64.b64decode(
            plain, altchars=b"-_" if "-" in plain or "_" in plain else None, validate=True
        )
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(
            "this is no base64",
            received=f"{text[:40]!r}: {error}",
            allowed="base64 of a file's bytes, with or without data:…;base64, before it",
        ) from None


def _decode_text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequestError("the text is not UTF-8", received=str(error)[:200]) from None
