"""Which subcommands there are, and how each ends: its exit status, and one line instead of a traceback."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from importlib import metadata

from framework.commands import streams
from framework.config.arguments import choose_device
from framework.config.command_line import Verb, find_verbs
from framework.core.errors import OarError, did_you_mean
from framework.core.interrupts import import_jax_whole, repeat_lost_interrupts, terminate_as_interrupt

log = logging.getLogger("oar")
# The subcommand, its module here, and what it does. A module is imported when its command is called. Verbs of domains
# stand between the two tables.
_OF_MODELS = {
    "train": ("train", "train a model from a config"),
    "eval": ("eval", "score a model on the data of its config"),
    "export": ("export", "write a model as an artifact that runs without its code, or as .pdparams"),
    "quantize": ("quantize", "write a model as an artifact with int8 layers, with its score held"),
    "infer": ("infer", "run a model on images, PDFs, videos and texts"),
    "serve": ("serve", "serve models over HTTP"),
    "verify-deploy": ("verify_deploy", "run a model on every runtime and say whether results are equal"),
}
_OF_FILES = {
    "convert": ("convert", "read weights of another framework and write them as safetensors or .pdparams"),
    "check": ("check", "look for what is wrong in the data of a config before it is trained on"),
    "data": ("data", "split a data set, draw its samples, count its classes"),
    "models": ("models", "list the models and weights, download and verify them"),
    "plan": ("plan", "say how to divide a training among devices that need not be here"),
    "launch": ("launch", "run a command on chosen devices, as paddle.distributed.launch"),
    "run-check": ("run_check", "prove that the installation works on this machine's devices"),
}
_OF_PROGRAMS = {
    "run": Verb("framework.paddle.run", "run a program written for Paddle: `import paddle` in it means Oar"),
}
# Names of Paddle's tools for the same.
_ALIASES = {
    "val": "eval",
    "evaluate": "eval",
    "predict": "infer",
    "export_model": "export",
    "run_check": "run-check",
}


def commands() -> dict[str, Verb]:
    """Every subcommand, in the order of `oar --help`: those of all domains, and the domains' own."""
    before, after = (
        {name: Verb(f"framework.commands.{module}", help) for name, (module, help) in table.items()}
        for table in (_OF_MODELS, _OF_FILES)
    )
    return {**before, **find_verbs(), **after, **_OF_PROGRAMS}


def aliases() -> dict[str, str]:
    """Names of Paddle's tools, and the subcommands that do the same."""
    return {**_ALIASES, **{alias: name for name, verb in find_verbs().items() for alias in verb.aliases}}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `oar` with these arguments (default: those of this process); returns the exit status."""
    with import_jax_whole(), repeat_lost_interrupts():  # while commands are imported, too
        return _guarded(lambda: _main(argv))


def _main(argv: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    name = given[0] if given else "--help"
    if name in ("-h", "--help", "help"):
        print(describe())
        return 0 if given else 2
    if name in ("-V", "--version"):
        print(f"oar {metadata.version('oar-toolkit')}")
        return 0
    verbs, others = commands(), aliases()
    known = others.get(name, name)
    if known not in verbs:
        near = did_you_mean(known, (*verbs, *others))
        print(
            f"error: there is no command {name!r}: one of {', '.join(verbs)}" + (f"; {near}" if near else ""),
            file=sys.stderr,
        )
        return 2
    return importlib.import_module(verbs[known].module).main(given[1:])


def describe() -> str:
    """What `oar --help` prints."""
    verbs = commands()
    width = max(map(len, verbs))
    lines = [f"  {name.ljust(width)}  {verb.help}" for name, verb in verbs.items()]
    return "\n".join(
        [
            "usage: oar COMMAND …",
            "",
            "Train, evaluate, export and run models on CPU, GPU and TPU.",
            "",
            *lines,
            "",
            "`oar COMMAND --help` says what a command takes. A model is the name of a config (`oar models names`),",
            "a config file, or an artifact's folder.",
        ]
    )


def use_device(args: argparse.Namespace) -> None:
    """Compute on the device of `--device` or `--use_gpu`, where one is given. Raises: DeviceError."""
    from framework.core.device import set_device

    if device := choose_device(args.device, args.use_gpu):
        set_device(device)


def run(
    parser: argparse.ArgumentParser,
    function: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None,
    stopped: str = "stopped",
) -> int:
    """Call `function` with the parsed arguments. Exit status: its own; 2 an error of ours; 130 stopped by Ctrl+C or
    SIGTERM."""
    with terminate_as_interrupt():
        return _guarded(lambda: function(parser.parse_args(argv)), stopped)


def _guarded(function: Callable[[], int], stopped: str = "stopped") -> int:
    """The exit status of a command; a line in the place of a traceback where it, or printing, fails for a reason that
    is the user's to mend."""
    streams.prepare()
    try:
        try:
            status = function()
        except SystemExit as end:  # of argparse, which has printed its help or its error
            if (error := streams.flush()) is not None:
                raise error from None
            raise end from None
        if (error := streams.flush()) is not None:
            raise error
        return status
    except OarError as error:
        streams.report(f"error: {error}")
        return 2
    except KeyboardInterrupt as stop:
        streams.report(str(stop) or stopped)
        return 130
    except BrokenPipeError:  # `… | head`: the reader has enough
        streams.silence()
        return 0
    except OSError as error:  # a full disk behind standard output, a path that is too long
        streams.silence()
        log.debug("the command ends", exc_info=True)
        name = "" if error.filename is None else f": {str(error.filename)[:200]}"
        streams.report(f"error: {error.strerror or error}{name}")
        return 2
