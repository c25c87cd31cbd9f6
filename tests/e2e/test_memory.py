"""Reading many pages in one process: resident memory stays where it is, and shapes are compiled once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rapidocr", reason="the default weights come with the rapidocr wheel (extra ocr)")
REPO = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, sys
from pathlib import Path
from ocr import predictor

def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

files = [Path(line) for line in sys.stdin.read().splitlines()]
read = predictor()
after = []
for number in range(int(sys.argv[1])):
    read(files[number % len(files)])
    after.append(resident())
print(json.dumps({"mb": after, "compiled": read.compile_count, "buckets": read.bucket_count}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_two_hundred_mixed_pages(shared: Path) -> None:
    data = shared / "data"
    files = sorted((data / "sroie" / "test" / "img").glob("*.jpg"))[:8]
    files += sorted((data / "ppocr_imgs" / "imgs").glob("*.jpg"))[:8]
    files += sorted((data / "tesseract_pages").glob("*.tif"))[:4]
    if len(files) < 20:
        pytest.skip("the images of shared/data are not here")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "200"],
        input="\n".join(map(str, files)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    first, last, peak = found["mb"][19], found["mb"][-1], max(found["mb"])
    print(
        f"after 20 pages {first:.0f} MB, after 200 {last:.0f} MB, peak {peak:.0f} MB; "
        f"{found['compiled']} of {found['buckets']} shapes"
    )
    assert last <= 1.05 * first
    assert peak < 1500
    assert found["compiled"] <= found["buckets"]
