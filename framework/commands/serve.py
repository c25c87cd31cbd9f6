"""Serve models over HTTP, to this machine alone unless --host says otherwise.

oar serve pp_lcnet_x0_25_clothing picodet_s_320_bccd --port 8000
oar serve shirts=inference_model/shirts -o limits.queue=64
oar serve -c models.yml --host 0.0.0.0 --api_key_file keys.txt
oar serve shirts=inference_model/shirts --ray --replicas 2
curl -F file=@shirt.jpg http://127.0.0.1:8000/v1/models/shirts:predict
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence

from framework.commands.infer import add_runtime, choose_runtime
from framework.commands.main import run
from framework.config import Tree, bind, from_plain, load
from framework.config.load import merge
from framework.core.errors import ConfigError, MissingExtraError
from framework.core.types import JSON

# Flags that are fields of the settings: the name of each, and its help.
_SWITCHES = {
    "allow_url": "requests may name addresses to fetch, of the public internet",
    "allow_private_url": "and of this machine and private networks",
}
_TEXTS = {
    "host": "127.0.0.1 (default): this machine alone; 0.0.0.0: all that reach it",
    "api_key_file": "a key a line; requests need one of them. OAR_API_KEYS in the environment does the same",
    "tls_cert": "PEM file: HTTPS in the place of HTTP",
    "tls_key": "PEM file of its key",
}
_NUMBERS = {
    "port": "default: 8000; 0 takes a free one",
    "workers": "processes, each with its own models; default: 1",
}
_OF_RAY = {
    "address": "of a cluster of Ray: auto, HOST:6379, ray://HOST:10001; default: Ray is started here",
    "replicas": "processes with all models, or auto: between --min_replicas and --max_replicas, as requests come",
    "min_replicas": "default: 1",
    "max_replicas": "default: 4",
}
_NEEDED = ("fastapi", "uvicorn", "multipart", "prometheus_client")


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar serve`."""
    flags_parser = argparse.ArgumentParser(
        prog="oar serve", description="Serve models over HTTP: requests of all clients share batches."
    )
    flags_parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="the name of a config, a config file or an artifact's folder; NAME=MODEL gives it another name",
    )
    flags_parser.add_argument("-c", "--config", help="a YAML file of models and settings: docs/serving.md")
    for name, help in _TEXTS.items():
        flags_parser.add_argument(f"--{name}", help=help)
    for name, help in _NUMBERS.items():
        flags_parser.add_argument(f"--{name}", type=int, help=help)
    for name, help in _SWITCHES.items():
        flags_parser.add_argument(f"--{name}", action="store_true", default=None, help=help)
    flags_parser.add_argument(
        "--ray",
        action="store_true",
        help="as a deployment of Ray Serve (extra `ray`); -o ray.cpus=4 and others",
    )
    for name, help in _OF_RAY.items():
        flags_parser.add_argument(
            f"--{name}", type=int if name.startswith("m") else str, help=f"--ray: {help}"
        )
    flags_parser.add_argument(
        "--stages",
        nargs="+",
        metavar="STAGE=REPLICAS",
        help="--ray: stages of pipelines that are deployments of their own",
    )
    flags_parser.add_argument("--log_format", choices=("json", "text"), help="default: json")
    flags_parser.add_argument(
        *("-o", "--opt"),
        dest="opt",
        nargs="+",
        action="extend",
        default=[],
        metavar="key=value",
        help="settings of the server, such as limits.queue=64 or limits.deadline=10",
    )
    add_runtime(flags_parser)
    return flags_parser


def read_settings(args: argparse.Namespace) -> Tree:
    """The settings of the file, the flags and the overrides, in this order."""
    tree = from_plain({}, "the command line") if args.config is None else load(args.config)
    flags = (*_TEXTS, *_NUMBERS, *_SWITCHES, "log_format")
    values: dict[str, JSON] = {name: value for name in flags if (value := getattr(args, name)) is not None}
    if args.models:
        values["models"] = [*_models_of(tree), *(_model(text, args) for text in args.models)]
    entries = {**tree.value, **{name: from_plain(value, f"--{name}") for name, value in values.items()}}
    return merge(Tree(entries, tree.where), [*_ray_settings(args), *args.opt])


def _ray_settings(args: argparse.Namespace) -> list[str]:
    """The flags of Ray as overrides. Raises: ConfigError, where --ray itself is missing."""
    values = {name: value for name in _OF_RAY if (value := getattr(args, name)) is not None}
    if not args.ray and (values or args.stages):
        raise ConfigError(
            "this flag is of a server on Ray",
            where="oar serve",
            received=", ".join(f"--{name}" for name in (*values, *(["stages"] if args.stages else []))),
            fix="--ray as well, or leave it out",
        )
    return ["ray={}", *(f"ray.{name}={value}" for name, value in values.items())] if args.ray else []


def _models_of(tree: Tree) -> list[JSON]:
    models = tree.value.get("models") if isinstance(tree.value, dict) else None
    plain = None if models is None else models.plain()
    return plain if isinstance(plain, list) else []


def _model(text: str, args: argparse.Namespace) -> dict[str, JSON]:
    """The settings of a MODEL or NAME=MODEL, with the flags of the runtime."""
    name, equals, source = text.partition("=")
    runtime = choose_runtime(args)
    facts: dict[str, JSON] = {"source": source if equals else text, "engine": runtime.engine}
    facts |= {"precision": runtime.precision, "trust": runtime.trust}
    facts |= {"device": runtime.device, "threads": runtime.threads}
    if args.stages:
        facts["stages"] = dict(_stage(text) for text in args.stages)
    return {**facts, "name": name} if equals else facts


def _stage(text: str) -> tuple[str, int]:
    """The name and the number of STAGE=REPLICAS. Raises: ConfigError."""
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise ConfigError(
            "this is no number of replicas", where="--stages", received=text, allowed="STAGE=REPLICAS"
        )
    return name, int(number)


def _serve(args: argparse.Namespace) -> int:
    for package in _NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "serving", "oar serve")
    from framework.serving.settings import ServerSettings

    settings = bind(read_settings(args), ServerSettings)
    if not settings.models:
        raise ConfigError(
            "no model is named",
            where="oar serve",
            allowed="MODEL …, or -c FILE with `models`",
            fix="run `oar models names` for the models that MODEL takes",
        )
    if settings.ray is not None:
        from framework.serving.ray_serve import serve_on_ray

        return serve_on_ray(settings)
    from framework.serving.server import serve

    return serve(settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar serve`; returns the exit status."""
    return run(parser(), _serve, argv)
