"""Runs programs of this folder on Paddle, or with `from framework import paddle` for `import paddle`.

python tests/e2e/paddle_programs/run.py paddle|framework.paddle OUT.json PROGRAM...

OUT.json gets {program: {name: [numbers]}} of what the programs report. Each runs in a process of its own, in an empty
folder. With Paddle's interpreter nothing of this project is imported.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))


def run(world, name):
    """The numbers that a program reports, run in this process and this folder."""
    text = rewritten if world == "framework.paddle" else str
    for file in (HERE / "exchange.py", HERE / f"{name}.py"):
        Path(file.name).write_text(text(file.read_text(encoding="utf-8")), encoding="utf-8")
    before, sys.argv = sys.argv, [f"{name}.py"]
    sys.path.insert(0, os.getcwd())
    sys.modules.pop("exchange", None)
    try:
        runpy.run_path(f"{name}.py", run_name="__main__")
        return sys.modules["exchange"].results
    finally:
        sys.argv = before
        sys.path.remove(os.getcwd())
        sys.modules.pop("exchange", None)


def rewritten(text):
    from tools.bench.paddle_examples_run import rewritten

    return rewritten(text)


def main(world, out, *names):
    done, failed = {}, []
    for name in names:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.run([sys.executable, __file__, "--one", world, name], cwd=folder)
            if process.returncode == 0:
                done[name] = json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))
                Path(out).write_text(json.dumps(done), encoding="utf-8")
            else:
                failed.append(name)
        print(
            f"{name}: {'failed' if name in failed else 'ran'}, {time.perf_counter() - start:.1f} s",
            flush=True,
        )
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        Path("results.json").write_text(json.dumps(run(*sys.argv[2:])), encoding="utf-8")
    else:
        main(*sys.argv[1:])
