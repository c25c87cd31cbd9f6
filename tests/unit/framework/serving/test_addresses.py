"""Servers behind proxies and asked by pages of other addresses: paths, origins, headers."""

from __future__ import annotations

import pytest

from framework.core.errors import ConfigError
from framework.serving.addresses import plain_path
from framework.serving.app import create_app
from framework.serving.settings import ModelSettings, ServerSettings
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.tiny import png, score_of

URL = "/v1/models/tiny:predict"
PAGE = "https://page.example"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("", "/"),
        ("//", "/"),
        ("//v1//models/", "/v1/models"),
        ("/oar", "/"),
        ("/oar/v1/models", "/v1/models"),
        ("/oars/v1", "/oars/v1"),
        ("/v1/oar", "/v1/oar"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert plain_path(path, "/oar") == expected


def test_a_slash_too_many_and_a_prefix_are_no_other_address(start: Start) -> None:
    client = start(root_path="/oar", api_keys=("secret",))
    key = {"x-api-key": "secret"}
    for path in (URL, f"{URL}/", f"/{URL}", f"/oar{URL}", f"//oar{URL}/"):
        answer = client.post(f"http://testserver{path}", content=png(51), headers=key, follow_redirects=False)
        assert answer.status_code == 200 and score_of(answer.content) == pytest.approx(0.2, abs=1e-2), path
        assert client.post(f"http://testserver{path}", content=png(51)).status_code == 401
    assert client.get("/oar/healthz/").status_code == 200  # a path without a key
    described = client.get("/oar/openapi.json", headers=key).json()
    assert described["servers"] == [{"url": "/oar"}]  # where clients that are generated of it ask


def test_the_description_of_a_server_without_a_prefix_names_none(start: Start) -> None:
    assert "servers" not in start().get("/openapi.json").json()


def test_pages_of_other_addresses_read_answers_and_errors(start: Start) -> None:
    client = start(allow_origins=(PAGE,), api_keys=("secret",))
    asks = {"origin": PAGE, "access-control-request-method": "POST"}
    answer = client.options(URL, headers={**asks, "access-control-request-headers": "authorization"})
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    for method in ("GET", "HEAD", "DELETE"):  # of routes that there are
        answer = client.options(URL, headers={**asks, "access-control-request-method": method})
        assert answer.status_code == 200 and method in answer.headers["access-control-allow-methods"], method
    headers = {"origin": PAGE, "x-api-key": "secret"}
    answer = client.post(URL, content=png(1), headers=headers)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == PAGE
    assert "X-Request-Id" in answer.headers["access-control-expose-headers"]
    answer = client.post(URL, content=png(1), headers={"origin": PAGE})
    assert answer.status_code == 401 and answer.headers["access-control-allow-origin"] == PAGE
    answer = client.post(URL, content=png(1), headers={**headers, "origin": "https://other.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_other_addresses_are_kept_out_unless_named(start: Start) -> None:
    client = start()
    answer = client.post(URL, content=png(1), headers={"origin": PAGE})
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers
    asks = {"origin": PAGE, "access-control-request-method": "POST"}
    assert client.options(URL, headers=asks).status_code == 405


def test_requests_of_other_pages_are_not_refused_where_their_header_ends() -> None:
    settings = ServerSettings(models=(ModelSettings("tiny"),), allow_origins=(PAGE,), root_path="/oar")
    admission = create_app(settings).state.admission
    asked: list[str] = []
    admission.refuse = lambda path, headers: asked.append(path)
    assert admission.refuse_early(URL, [(b"origin", PAGE.encode())]) is None and not asked
    admission.refuse_early(f"/oar{URL}/", [(b"host", b"a")])
    assert asked == [URL]


@pytest.mark.parametrize("origin", ["page.example", "https://page.example/", "*.example", ""])
def test_origins_are_checked(origin: str) -> None:
    with pytest.raises(ConfigError, match="no origin of web pages"):
        ServerSettings(allow_origins=(origin,))


@pytest.mark.parametrize("path", ["oar", "/oar/", "/", "/a?b"])
def test_prefixes_are_checked(path: str) -> None:
    with pytest.raises(ConfigError, match="no beginning of paths"):
        ServerSettings(root_path=path)


def test_a_compressed_body_is_told_what_is_read(start: Start) -> None:
    answer = start().post(URL, content=png(1), headers={"content-encoding": "br"})
    assert answer.status_code == 415 and answer.headers["accept-encoding"] == "gzip, deflate"
