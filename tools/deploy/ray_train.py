"""Train a config on the workers of Ray Train: its JaxTrainer starts them, and each calls `train` as `oar train` does.

python tools/deploy/ray_train.py lenet_mnist --workers 2 --output_dir /shared/lenet -o data.root=/shared/mnist

The folder must be one for all workers. What a worker has of devices is the mesh of the config's `parallel`.
"""

import argparse
import importlib
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def train_loop(settings: dict) -> None:
    """What each worker runs. jax is imported here, behind the variables that Ray sets."""
    ray, train = importlib.import_module("ray"), importlib.import_module("ray.train")
    context = train.get_context()
    if not (settings["gpus"] or settings["tpu"]):  # Ray joins the workers of GPUs and TPUs, and no others
        with socket.socket() as free:
            free.bind(("", 0))
            here = f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"
        collective = importlib.import_module("ray.train.collective")
        os.environ["PADDLE_MASTER"] = collective.broadcast_from_rank_zero(here)
        os.environ["PADDLE_TRAINERS_NUM"] = str(context.get_world_size())
        os.environ["PADDLE_TRAINER_ID"] = str(context.get_world_rank())
    from framework.workflow.train.run import train as train_config

    scores = train_config(
        settings["config"], tuple(settings["opt"]), settings["output_dir"], resume=settings["resume"]
    )
    train.report({name: float(value) for name, value in scores.items()})


def main(argv: list[str] | None = None) -> int:
    """Start the workers, wait for them, and print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config")
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", type=float, default=0, help="of each worker")
    parser.add_argument("--tpu", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("-o", "--opt", nargs="+", default=[], metavar="key=value")
    args = parser.parse_args(argv)
    from framework.workflow.batch.cluster import connect

    with connect(None, "Ray Train", args.workers):
        ray_jax, train = importlib.import_module("ray.train.v2.jax"), importlib.import_module("ray.train")
        resources = {"CPU": 1.0} | ({"GPU": args.gpus} if args.gpus else {})
        config = os.path.abspath(args.config) if os.path.exists(args.config) else args.config
        result = ray_jax.JaxTrainer(
            train_loop,
            train_loop_config={
                **vars(args),
                "config": config,
                "output_dir": os.path.abspath(args.output_dir),
            },
            jax_config=ray_jax.JaxConfig(use_gpu=args.gpus > 0, use_tpu=args.tpu),
            scaling_config=train.ScalingConfig(
                num_workers=args.workers,
                use_gpu=args.gpus > 0,
                use_tpu=args.tpu,
                resources_per_worker=resources,
            ),
            run_config=train.RunConfig(storage_path=os.path.abspath(args.output_dir) + ".ray"),
        ).fit()
    print(result.metrics)
    return 0 if result.error is None else 1


if __name__ == "__main__":
    sys.exit(main())
