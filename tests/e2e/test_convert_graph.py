"""`oar convert` on graphs: an artifact that runs without the file, and what can be wrong."""

from pathlib import Path

import numpy as np

from framework.inference import Config, create_predictor
from tests.e2e.tools import run_tool

DATA = Path(__file__).resolve().parents[1] / "golden" / "data" / "paddle_graphs_text_line_pdmodel.npz"


def test_a_program_of_paddle_becomes_an_artifact(tmp_path: Path) -> None:
    with np.load(DATA) as stored:
        arrays = dict(stored)
    program = tmp_path / "inference.pdmodel"
    program.write_bytes(arrays["program"].tobytes())
    program.with_suffix(".pdiparams").write_bytes(arrays["params"].tobytes())
    made = tmp_path / "text_line"

    wrong = run_tool("convert", program, made, "--shape", "image=n,3,16,32", cwd=tmp_path)
    assert (
        wrong.returncode == 2 and "no such input" in wrong.stderr and "x [None, 3, 16, None]" in wrong.stderr
    )
    wrong = run_tool("convert", program, made, "--shape", "x", cwd=tmp_path)
    assert wrong.returncode == 2 and "--shape image=n,3,32*h,32*w" in wrong.stderr
    wrong = run_tool("convert", program, made, "--shape", "x=n,3,16", cwd=tmp_path)
    assert wrong.returncode == 2 and "does not go with these sizes" in wrong.stderr and not made.exists()

    done = run_tool("convert", program, made, "--shape", "x=n,3,16,8*w", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "input x: [n, 3, 16, 8*w] float32" in done.stdout and "largest difference" in done.stdout
    program.unlink()
    (got,) = create_predictor(Config(made)).run([arrays["x"]])
    np.testing.assert_allclose(got, arrays["out0"], rtol=1e-5, atol=1e-5)
