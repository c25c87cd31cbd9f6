"""What the server answers: the JSON of `oar infer`, other formats, options, several inputs and pages."""

from __future__ import annotations

import base64
import binascii
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from framework.core.errors import InputError
from framework.serving.errors import BadRequestError
from framework.serving.formats import ResultResponse
from framework.serving.images import Upload
from framework.serving.request_body import clean_name, decode_base64
from framework.vision import image as vision_image
from tests.e2e.tools import run_tool
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.tiny import png, score_of
from zoo.classification.results import Classification

URL = "/v1/models/tiny:predict"


def pdf(pages: int, width: int = 60, height: int = 40) -> bytes:
    """A document of grey pages, each a little brighter."""
    images = [Image.fromarray(np.full((height, width, 3), 40 + 20 * n % 200, np.uint8)) for n in range(pages)]
    out = io.BytesIO()
    images[0].save(out, "PDF", save_all=True, append_images=images[1:], resolution=200.0)
    return out.getvalue()


def test_the_json_is_that_of_oar_infer(start: Start, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(100))
    done = run_tool("infer", "--model_dir", tiny, "a.png", "--output_dir", "out", "--no_draw", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = start().post(URL, files={"file": ("folder/a.png", png(100))})
    assert answer.status_code == 200
    file = (tmp_path / "out" / "a.json").read_text(encoding="utf-8")
    assert json.dumps(answer.json(), ensure_ascii=False, indent=1) + "\n" == file
    assert answer.text.count("\n") == 1
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("way", ["form", "json", "data url", "raw", "curl", "urlsafe", "encoded form"])
def test_ways_to_send_an_image(start: Start, way: str) -> None:
    client, data = start(), png(200)
    text = base64.b64encode(data).decode()
    if way == "form":
        answer = client.post(URL, files={"anything": data}, data={"top": "1"})
    elif way == "raw":
        answer = client.post(URL + "?top=1", content=data, headers={"content-type": "image/png"})
    elif way == "encoded form":
        answer = client.post(URL, data={"image": text, "top": "1"})
    elif way == "curl":  # --data-binary
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.post(URL + "?top=1", content=data, headers=kind)
    else:
        text = f"data:image/png;base64,{text}" if way == "data url" else text
        text = base64.urlsafe_b64encode(data).decode() if way == "urlsafe" else text
        answer = client.post(URL, json={"image": text, "options": {"top": 1}})
    assert answer.status_code == 200, answer.text
    assert [one["label"] for one in answer.json()["classes"]] == ["bright"]
    assert score_of(answer.content) == pytest.approx(200 / 255, abs=1e-5)


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "application/octet-stream", "text/plain", ""]
)
def test_json_is_told_by_its_beginning_where_its_type_says_nothing(start: Start, kind: str) -> None:
    """`curl -d` calls all a form, and many a client says nothing."""
    body = json.dumps({"image": base64.b64encode(png(200)).decode(), "options": {"top": 1}})
    answer = start().post(URL, content="\n" + body, headers={"content-type": kind} if kind else {})
    assert [one["label"] for one in answer.json()["classes"]] == ["bright"]


@pytest.mark.parametrize(
    ("disposition", "source"),
    [
        ("filename*=UTF-8''%e5%9b%be.png", "图.png"),
        ("filename*=GBK'zh'%cd%bc.png; x=1", "图.png"),
        ("filename=a.png; filename*=UTF-8''%e5%9b%be.png", "a.png"),
        ("filename*=unknown''%ff", None),
        ('filename="图.png"', "图.png"),
    ],
)
def test_files_are_named_in_any_way(start: Start, disposition: str, source: str | None) -> None:
    head = f"--B\r\nContent-Disposition: form-data; name=file; {disposition}\r\n\r\n".encode()
    body = head + png(200) + b"\r\n--B--\r\n"
    answer = start().post(URL, content=body, headers={"content-type": "multipart/form-data; boundary=B"})
    assert answer.status_code == 200, answer.text
    assert source is None or answer.json()["source"] == source


def test_a_part_of_a_file_s_type_is_a_file_without_a_name_too(start: Start) -> None:
    """As Spring sends bytes; and a field may be as long as a body."""
    client = start()
    head = "--B\r\nContent-Disposition: form-data; name=file\r\nContent-Type: {}\r\n\r\n"
    kind = {"content-type": "multipart/form-data; boundary=B"}
    for type_name in ("image/png", "application/octet-stream"):
        body = head.format(type_name).encode() + png(200) + b"\r\n--B--\r\n"
        assert client.post(URL, content=body, headers=kind).status_code == 200, type_name
    text = base64.b64encode(png(200) + bytes(2 << 20)).decode()
    body = head.format("text/plain").encode() + text.encode() + b"\r\n--B--\r\n"
    assert client.post(URL, content=body, headers=kind).status_code == 200


FORM = {"content-type": "multipart/form-data; boundary=B"}
FILE_PART = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.png"'


@pytest.mark.parametrize(
    "preamble",
    [
        b"This is a message in several parts.\r\n",
        b"Content-Type: multipart/form-data; boundary=B\r\nMIME-Version: 1.0\r\n\r\n",
        b"not the boundary: --B\r\n",
        b"\r\n",
        b"\n",
    ],
)
def test_what_stands_before_the_first_boundary_is_ignored(start: Start, preamble: bytes) -> None:
    """RFC 2046, 5.1.1, and remix#11746: libraries for mail write the head of a message there."""
    body = preamble + FILE_PART + b"\r\n\r\n" + png(200) + b"\r\n--B--\r\n"

    def in_pieces() -> Iterator[bytes]:
        yield from (body[index : index + 1] for index in range(200))
        yield body[200:]

    for content in (body, in_pieces()):
        answer = start().post(URL, content=content, headers=FORM)
        assert score_of(answer.content) == pytest.approx(200 / 255, abs=1e-4), answer.text


def test_a_form_of_another_boundary_says_so(start: Start) -> None:
    body = FILE_PART + b"\r\n\r\n" + png(200) + b"\r\n--B--\r\n"
    kind = "multipart/form-data; boundary=other"
    answer = start().post(URL, content=body, headers={"content-type": kind})
    assert answer.status_code == 400
    assert "boundary is not in the body" in answer.text and "--other" in answer.text and "--B" in answer.text


def test_parts_that_are_written_for_mail(start: Start) -> None:
    """As `curl -F "file=@a.png;encoder=base64"` sends them: akka-http#3812, werkzeug#2120."""
    client = start()
    for encoding, content in (
        ("base64", base64.encodebytes(png(200)).replace(b"\n", b"\r\n")),
        ("BASE64", base64.b64encode(png(200))),
        ("quoted-printable", binascii.b2a_qp(png(200), istext=False).replace(b"\n", b"\r\n")),
        ("binary", png(200)),
    ):
        head = FILE_PART + f"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()
        option = b'\r\n--B\r\nContent-Disposition: form-data; name="options"\r\nContent-Type: text/plain\r\n'
        option += b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(b'{"top": 1}')
        answer = client.post(URL, content=head + content + option + b"\r\n--B--\r\n", headers=FORM)
        assert score_of(answer.content) == pytest.approx(200 / 255, abs=1e-4), answer.text
    part = b'--B\r\nContent-Disposition: form-data; name="image"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
    answer = client.post(URL, content=part + base64.b64encode(png(200)) + b"\r\n--B--\r\n", headers=FORM)
    assert score_of(answer.content) == pytest.approx(200 / 255, abs=1e-4), answer.text
    broken = FILE_PART + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n=A\r\n--B--\r\n"
    assert client.post(URL, content=broken, headers=FORM).status_code == 400


def test_a_large_file_of_a_form_needs_no_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container without a folder for temporary files, or with a small one: geolens#101."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_, **__: pytest.fail("a file is written"))
    answer = start().post(URL, files={"file": ("a.png", png(200) + bytes(2 << 20))})
    assert answer.status_code == 200, answer.text


def test_a_form_without_a_boundary_says_so(start: Start) -> None:
    answer = start().post(URL, content=b"--B", headers={"content-type": "multipart/form-data"})
    assert (
        answer.status_code == 400 and "the form cannot be read" in answer.text and "boundary" in answer.text
    )


def test_options_are_checked(start: Start) -> None:
    client = start()
    for query, problem in (
        ("topp=1", "did you mean 'top'?"),
        ("top=many", "wrong type"),
        ("top=0", "a result holds a class"),
        ("batch_size=1000000", "server's, not a request's"),
        ("classes=cat", "no such class"),
    ):
        answer = client.post(f"{URL}?{query}", content=png(9))
        assert answer.status_code in (400, 422), answer.text
        assert problem in answer.text
    answer = client.post(URL, json={"image": base64.b64encode(png(9)).decode(), "options": {"top": True}})
    assert answer.status_code == 400 and "wrong type" in answer.text
    answer = client.post(f"{URL}?classes=dark&top=2", content=png(51))
    assert [one["label"] for one in answer.json()["classes"]] == ["dark"]


def test_a_drawing(start: Start) -> None:
    client = start()
    for answer in (
        client.post(URL, content=png(60, 40, 30), headers={"accept": "image/png, */*;q=0.1"}),
        client.post(f"{URL}?format=png", content=png(60, 40, 30)),
    ):
        assert answer.headers["content-type"] == "image/png"
        assert vision_image.read(answer.content).shape[2] == 3
    answer = client.post(f"{URL}?format=pgn", content=png(1))
    assert answer.status_code == 406 and "did you mean 'png'" in answer.text
    assert client.post(URL, content=png(1), headers={"accept": "video/mp4"}).status_code == 406
    assert client.post(URL, content=png(1), headers={"accept": "text/html, */*"}).status_code == 200


def test_pages_of_a_document_come_as_lines(start: Start) -> None:
    client = start()
    answer = client.post(f"{URL}?name=scan.pdf", content=pdf(5))
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["x-accel-buffering"] == "no"  # else a proxy waits for the last page: nginx#1505
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [round(255 * score_of(line)) for line in lines] == pytest.approx([40, 60, 80, 100, 120], abs=3)
    assert {line["source"] for line in lines} == {"scan.pdf"}
    assert client.post(f"{URL}?format=json", content=pdf(5)).json() == [
        {**line, "source": ""} for line in lines
    ]
    assert client.post(f"{URL}?format=png", content=pdf(2)).status_code == 406
    assert len(client.post(f"{URL}?format=png", content=pdf(1)).content) > 100


def test_several_inputs_and_one_that_cannot_be_read(start: Start) -> None:
    client = start()
    texts = [base64.b64encode(data).decode() for data in (png(10), b"no image", png(30))]
    answer = client.post(URL, json={"inputs": [{"image": text} for text in texts]})
    first, second, third = map(json.loads, answer.text.splitlines())
    assert [round(255 * score_of(one)) for one in (first, third)] == [10, 30]
    assert second["input"] == 1 and second["error"]["status"] == 422
    answer = client.post(URL, files=[("a", ("1.png", png(10))), ("a", ("2.png", png(20)))])
    assert [json.loads(line)["source"] for line in answer.text.splitlines()] == ["1.png", "2.png"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: text,
        lambda text: {"b64": text},
        lambda text: {"image": {"b64": text}},
        lambda text: {"data": text},
        lambda text: {"image_bytes": {"b64": text}},
    ],
)
def test_instances_are_answered_with_predictions(start: Start, wrap: Callable[[str], object]) -> None:
    client = start()
    texts = [base64.b64encode(png(value)).decode() for value in (10, 240)]
    body: dict[str, object] = {"instances": [wrap(text) for text in texts]}
    answer = client.post(URL, json={**body, "signature_name": "serving_default"})
    assert list(answer.json()) == ["predictions"]
    scores = [score_of(one) for one in answer.json()["predictions"]]
    assert scores == pytest.approx([10 / 255, 240 / 255], abs=1e-5)
    bad = client.post(URL, json={"instances": [wrap(texts[0]), wrap(base64.b64encode(b"x" * 99).decode())]})
    assert bad.status_code == 422 and "known format" in bad.text


def test_a_list_of_images_as_hub_serving_takes_it(start: Start) -> None:
    texts = [base64.b64encode(png(value)).decode() for value in (10, 240)]
    answer = start().post(URL, json={"images": texts, "options": {"top": 1}})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["classes"][0]["label"] for one in lines] == ["dark", "bright"]
    nothing = start().post(URL, json={"key": ["image"], "value": texts})
    assert nothing.status_code == 400 and "received" in nothing.text and "key, value" in nothing.text


def test_requests_that_say_nothing_or_too_much(start: Start) -> None:
    client = start()
    for body, status in (
        ({}, 400),
        ({"image": "%%%"}, 400),
        ({"image": 5}, 400),
        ({"image": "aGk=", "text": "hi"}, 400),
        ({"text": "hi"}, 415),
        ({"inputs": "x"}, 400),
        ({"inputs": [[]]}, 400),
        ({"image": ""}, 400),
        ({"url": "http://127.0.0.1/"}, 403),
        ({"image": "aGk=", "options": []}, 200),
        ({"image": "aGk=", "options": [1]}, 400),
        ({"image": "aGk=", "timeout": "soon"}, 400),
        ({"inputs": [{"text": "a"}] * 65}, 413),
    ):
        answer = client.post(URL, json=body)
        expected = 422 if status == 200 else status
        assert answer.status_code == expected, (body, answer.text)
        assert answer.json()["error"]["problem"]
    assert client.post(URL).status_code == 400


def test_models_and_paths(start: Start) -> None:
    client = start()
    listed = client.get("/v1/models").json()
    assert listed["models"] == ["tiny"]
    (facts,) = listed["data"]
    assert facts["name"] == "tiny" and facts["takes"] == "image" and facts["options"]["top"]["default"] == 5
    assert "batch_size" not in facts["options"]
    assert client.get("/v1/models/tiny").json() == facts
    for path in (
        "/v1/models/tinny:predict",
        "/v1/models/..%2f..%2fetc%2fpasswd:predict",
        "/v1/models/..:predict",
    ):
        answer = client.post(path, content=png(1))
        assert answer.status_code == 404, path
    assert "did you mean 'tiny'" in client.post("/v1/models/tinny:predict", content=png(1)).text
    assert client.delete(URL).status_code == 405
    assert client.get("/openapi.json").json()["paths"]["/v1/models/{name}:predict"]
    assert client.get("/docs").status_code == 404  # it would load scripts from another server
    metrics = client.get("/metrics").text
    assert 'oar_requests_total{model="tiny",route="/v1/models/{name}:predict",status="405"}' not in metrics
    assert 'oar_model_ready{model="tiny"} 1.0' in metrics


def test_numbers_that_json_has_no_words_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """serve#1304, model_server#4337: NaN in an answer is no JSON."""
    whole = Classification.to_dict
    monkeypatch.setattr(
        Classification,
        "to_dict",
        lambda self: {**whole(self), **({"best": float("nan")} if self.label == "dark" else {})},
    )
    client = start()
    texts = [base64.b64encode(png(value)).decode() for value in (10, 240, 20)]
    for path, body in (
        (URL, {"image": texts[0]}),
        (URL, {"instances": texts}),
        (f"{URL}?format=json", {"inputs": [{"image": text} for text in texts]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 422 and "NaN" in answer.json()["error"]["problem"]
    lines = client.post(URL, json={"inputs": [{"image": text} for text in texts]}).text.splitlines()
    entries = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert ["error" in entry for entry in entries] == [True, False, True]
    assert client.post(URL, json={"image": texts[1]}).status_code == 200
    with pytest.raises(InputError, match="infinite"):
        ResultResponse({"score": float("inf")})


@pytest.mark.parametrize(
    ("accept", "media_type", "last"),
    [
        ("*/*", "text/plain; version=0.0.4", ""),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text; version=1.0.0",
            "# EOF\n",
        ),
    ],
)
def test_metrics_are_written_as_the_scraper_reads_them(
    start: Start, accept: str, media_type: str, last: str
) -> None:
    client = start()
    client.post(URL, content=png(1))
    answer = client.get("/metrics", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith(media_type) and answer.headers["vary"] == "Accept"
    assert answer.text.endswith("# EOF\n") == bool(last)
    assert (
        'oar_requests_total{model="tiny",route="/v1/models/{name}:predict",status="200"} 1.0' in answer.text
    )
    if last:
        parsed = {family.name for family in text_string_to_metric_families(answer.text)}
        assert {"oar_requests", "oar_request_seconds", "oar_model_ready"} <= parsed


def test_a_model_that_is_not_ready_fails_probes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """kserve#1915, #3113: a readiness probe of KServe's first protocol asks for the model."""
    client = start()
    path = "/v1/models/tiny"
    for one in (path, "/readyz", "/health"):
        assert client.get(one).status_code == 200
    monkeypatch.setattr(client.app.state.store.get("tiny"), "_version", None)  # type: ignore[attr-defined]
    assert client.get("/health").status_code == 503  # servers with this path listen when a model is ready
    answer = client.get(path)
    assert answer.status_code == 503 and answer.json()["ready"] is False and answer.headers["retry-after"]
    assert client.get("/readyz").status_code == client.get("/v2/models/tiny/ready").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/models").json()["data"][0]["ready"] is False


def test_names_of_files_are_names_alone() -> None:
    assert clean_name("../../etc/passwd") == "passwd"
    assert clean_name("C:\\scans\\a\r\n\x1b[31mb.png") == "a[31mb.png"
    assert len(clean_name("x" * 5000)) == 200 and clean_name(None) == ""
    assert decode_base64("aGk\n=") == b"hi"
    assert Upload(b"  \n%PDF-1.7").is_pdf and not Upload(b"x%PDF-").is_pdf


def test_a_drawing_comes_with_the_json_of_one_run(start: Start) -> None:
    client = start()
    version, runs = client.app.state.store.get("tiny").version, []  # type: ignore[attr-defined]
    run = version._run
    version._run = lambda predictor, items: (runs.append(len(items)), run(predictor, items))[1]
    plain = client.post(URL, content=png(200)).json()
    alone = client.post(f"{URL}?format=png", content=png(200)).content
    runs.clear()
    for answer in (
        client.post(f"{URL}?drawing=true", content=png(200)).json(),
        client.post(f"{URL}?drawing=1&format=ndjson", content=png(200)).json(),
        client.post(URL, files={"file": png(200)}, data={"drawing": "true"}).json(),
        client.post(URL, json={"image": base64.b64encode(png(200)).decode(), "drawing": True}).json(),
    ):
        head, _, data = answer.pop("drawing").partition(",")
        assert head == "data:image/png;base64" and base64.b64decode(data) == alone
        assert answer["classes"] == plain["classes"]
    assert runs == [1] * 4
    assert "drawing" not in client.post(f"{URL}?drawing=false", content=png(200)).json()
    answer = client.post(f"{URL}?drawing=maybe", content=png(200))
    assert answer.status_code == 400 and answer.json()["error"]["received"] == "maybe"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "DATA:image/PNG;base64," + text,
        lambda text: "data:image/png;charset=utf-8;base64," + text,
        lambda text: "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76)) + "\n",
        lambda text: text.rstrip("="),
        lambda text: text.replace("+", "-").replace("/", "_").rstrip("="),
        lambda text: text.replace("+", " "),
        lambda text: text + "==",  # basyx-python-sdk#14
        lambda text: "data:image/png;base64," + quote(text, safe=""),  # xhtml2pdf#409; RFC 2397
    ],
)
def test_base64_as_clients_write_it(change: Callable[[str], str]) -> None:
    """Source: PaddleOCR#4708, and what forms and libraries of JavaScript make of it."""
    for data in (b"\0\xfb\xef\xbe\xff\0", b"\0\xfb\xef\xbe\1", b"\0\xfb\xef\xbe", png(9)):
        assert decode_base64(change(base64.b64encode(data).decode())) == data


@pytest.mark.parametrize("text", ["a", "%2B", "b'aGk='", "aGk=a", "ä", "aGk\0"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(BadRequestError, match="no base64"):
        decode_base64(text)


def test_a_part_of_a_form_without_a_name_of_a_file(start: Start) -> None:
    client, text = start(), base64.b64encode(png(200)).decode()
    for key in ("image", "file"):
        for body in (text, "data:image/png;base64," + text):
            part = f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{body}\r\n--b--\r\n'
            answer = client.post(
                URL, content=part, headers={"content-type": "multipart/form-data; boundary=b"}
            )
            assert score_of(answer.content) == pytest.approx(200 / 255, abs=1e-4), answer.text


def test_methods(start: Start) -> None:
    client = start()
    for path in ("/healthz", "/readyz", "/health", "/v2/health/live", "/v2/health/ready"):
        assert client.head(path).status_code == 200 and not client.head(path).content
    for path in ("/", "/metrics", "/v1/models", "/v1/models/tiny", "/openapi.json"):  # mengram#83
        head, whole = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-type"] == whole.headers["content-type"]
    answer = client.get(URL)
    assert answer.status_code == 405 and answer.json()["error"]["allowed"] == "POST"
    assert answer.headers["allow"] == "POST" and client.head("/none").status_code == 404
    assert client.put(URL).headers["allow"] == "POST"  # RFC 9110, 15.5.6
    assert "GET" in client.post("/healthz").headers["allow"]


@pytest.mark.parametrize("kind", ["binary/octet-stream", "text/json"])
def test_types_of_stores_and_of_older_clients(start: Start, kind: str) -> None:
    data = png(200)
    content = json.dumps({"image": base64.b64encode(data).decode()}).encode()
    answer = start().post(
        URL, content=content if kind == "text/json" else data, headers={"content-type": kind}
    )
    assert answer.status_code == 200 and score_of(answer.content) == pytest.approx(200 / 255, abs=1e-4)


def test_options_of_a_form_that_a_browser_sends_as_a_blob(start: Start) -> None:
    blob = ("blob", b'{"top": 1}', "application/json")
    answer = start().post(URL, files={"file": ("a.png", png(200)), "options": blob})
    assert answer.status_code == 200 and len(answer.json()["classes"]) == 1, answer.text
