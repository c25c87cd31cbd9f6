"""The commands of docs/llm.md, pasted one after the other into a shell: from a text to a model that is served."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openai")
pytest.importorskip("jinja2")
REPO = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.name == "nt" or shutil.which("curl") is None, reason="needs a POSIX shell and curl")
def test_the_commands_of_the_document(tmp_path: Path) -> None:
    text = (REPO / "docs" / "llm.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = "set -e\n" + "".join(blocks).replace(":8000", f":{port}").replace(
        "--port 8000", f"--port {port}"
    )
    for name, start in (("oar", "-m framework "), ("python", "")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {start}"$@"\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(REPO), "PYTHONUTF8": "1"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    said = done.stdout
    assert said.count("Tokyo.") == 1 and '"content":"Lima."' in said.replace('": "', '":"')
    assert "I am a small model that was trained on this page." in said
    assert "Oslo. " in said and "|" in said and "data: [DONE]" in said and "Nairobi. stop" in said
    assert said.count("Cairo.") == 1
