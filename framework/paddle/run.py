"""Run a program written for Paddle, unchanged: `import paddle` in it means Oar (framework/paddle/install.py).

oar run train.py --epochs 3
oar run -m paddleseg.train --config config.yml
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from framework.core.errors import InputError
from framework.paddle.install import SHIM, install


def parser(prog: str = "oar run") -> argparse.ArgumentParser:
    """The arguments of `oar run`."""
    arguments = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    arguments.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    arguments.add_argument("script", nargs="?", metavar="SCRIPT …", help="the script, and its arguments")
    return arguments


def run(module: str | None, script: str | None, arguments: Sequence[str]) -> None:
    """Run a module or a script as the main program; processes that it starts have the same `paddle`. An error of the
    program ends it with its traceback, as it would without this."""
    install()
    paths = [str(SHIM), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    if module:
        sys.argv = [module, *arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif script:
        sys.argv = [script, *arguments]
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")


def find_problem(module: str | None, script: str | None) -> InputError | None:
    """Why nothing can be run; None: it can."""
    if not module and not script:
        return InputError(
            "there is nothing to run", fix="oar run SCRIPT.py ARGUMENTS, or oar run -m MODULE ARGUMENTS"
        )
    if script and not Path(script).is_file():
        return InputError(
            "there is no such script", where=script, fix="check the path; a module is run with -m"
        )
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar run`; returns the exit status. What stands behind the script or module is the program's own."""
    words = list(sys.argv[1:] if argv is None else argv)
    count = 2 if words[:1] == ["-m"] else 1
    args = parser().parse_args(words[:count])
    if problem := find_problem(args.module, args.script):
        print(f"error: {problem}", file=sys.stderr)
        return 2
    run(args.module, args.script, words[count:])
    return 0
