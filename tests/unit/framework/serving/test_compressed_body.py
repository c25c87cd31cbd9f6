"""Bodies that clients compress: read as what they hold, within the limits of bodies that come as they are."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import pytest

from framework.serving.compressed_body import Inflater
from framework.serving.settings import Limits
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.test_predict import pdf
from tests.unit.framework.serving.tiny import png, score_of

URL = "/v1/models/tiny:predict"


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("GZIP ", gzip.compress),
        ("gzip", lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:])),
        ("deflate", zlib.compress),
    ],
)
def test_files_and_json(start: Start, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    client = start()
    headers = {"content-encoding": encoding}
    answer = client.post(URL, content=compress(png(51)), headers=headers)
    assert answer.status_code == 200 and round(255 * score_of(answer.json())) == 51
    tensor = {"name": "image", "shape": [1, 8, 8, 3], "datatype": "UINT8", "data": [51] * 192}
    body = compress(json.dumps({"inputs": [tensor]}).encode())
    assert client.post("/v2/models/tiny/infer", content=body, headers=headers).status_code == 200


def test_what_comes_by_chunks(start: Start) -> None:
    data = gzip.compress(pdf(2), 0)
    chunks = (data[at : at + 100] for at in range(0, len(data), 100))
    answer = start().post(URL, content=chunks, headers={"content-encoding": "gzip"})
    assert answer.status_code == 200 and len(answer.text.splitlines()) == 2


def test_a_bomb_is_held_to_the_size_of_a_body(start: Start) -> None:
    client = start(limits=Limits(body_mb=1))
    bomb = gzip.compress(bytes(50 << 20))
    assert len(bomb) < 1 << 20
    answer = client.post(URL, content=bomb, headers={"content-encoding": "gzip"})
    assert answer.status_code == 413 and "at most 1,048,576" in answer.text
    assert client.post(URL, content=png(1)).status_code == 200


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (png(1), "cannot be read"),
        (gzip.compress(png(1))[:-9], "breaks off"),
        (gzip.compress(png(1)) + b"more", "behind the compressed body"),
    ],
)
def test_damaged_ones_are_refused(start: Start, body: bytes, text: str) -> None:
    answer = start().post(URL, content=body, headers={"content-encoding": "gzip"})
    assert answer.status_code == 400 and text in answer.text


def test_portions_are_bounded() -> None:
    inflater, portions = Inflater(), list[bytes]()
    inflater.feed(gzip.compress(bytes(3 << 20)))
    while inflater.pending:
        portions.append(inflater.read())
    inflater.finish()
    assert sum(map(len, portions)) == 3 << 20 and max(map(len, portions)) <= 1 << 18
