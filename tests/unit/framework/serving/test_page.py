"""The page of a server: its files, what they may load, and that it asks nothing of another server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from framework.serving import routes
from framework.serving.app import create_app
from framework.serving.settings import ServerSettings

FOLDER = Path(routes.__file__).parents[1] / "page"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app(ServerSettings(api_keys=("secret",))))


def test_every_file_is_served_without_a_key_and_with_its_policy(client: TestClient) -> None:
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    files = sorted(FOLDER.iterdir())
    assert {file.suffix for file in files} == set(kinds)
    for file in files:
        answer = client.get("/" if file.name == "index.html" else f"/page/{file.name}")
        assert answer.status_code == 200 and answer.content == file.read_bytes()
        assert answer.headers["content-type"].startswith(kinds[file.suffix])
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_loads_nothing_from_elsewhere_and_holds_no_script_of_its_own() -> None:
    for file in FOLDER.iterdir():
        text = re.sub(r'xmlns="[^"]*"', "", file.read_text(encoding="utf-8"))
        assert "//" not in re.sub(r"(?m)(^|\s)//\s.*$", "", text.replace("// --", "")), file.name
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(
        r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|<style", html
    )  # the policy would not run them
    for path in re.findall(r'(?:href|src)="([^"]*)"', html):
        assert (FOLDER.parent / path).is_file(), path


def test_every_element_that_the_script_names_is_there() -> None:
    ids = set(re.findall(r'\sid="([^"]*)"', (FOLDER / "index.html").read_text(encoding="utf-8")))
    for script in FOLDER.glob("*.js"):
        assert set(re.findall(r'byId\("([^"]*)"\)', script.read_text(encoding="utf-8"))) <= ids


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "index.html", "nothing.js"])
def test_no_other_file_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/page/{name}", headers={"X-API-Key": "secret"}).status_code == 404
