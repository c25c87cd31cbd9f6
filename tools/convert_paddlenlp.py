"""The JSON of PaddleNLP's run_pretrain.py, run_finetune.py or run_dpo.py as a configuration for `oar train`.

python tools/convert_paddlenlp.py sft_argument.json --output sft.yml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.core.disk import write_file
from framework.core.errors import OarError
from nlp.paddlenlp_arguments import as_yaml, convert_arguments, read_arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where the file cannot be read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="such as pretrain_argument.json, lora_argument.json")
    parser.add_argument(
        "--stage", choices=["pretrain", "finetune", "dpo", "kto"], help="default: by the keys"
    )
    parser.add_argument("--output", type=Path, help="the .yml to write; default: it is printed")
    options = parser.parse_args(arguments)
    try:
        converted = convert_arguments(read_arguments(options.path), options.stage)
        text = as_yaml(converted, options.path.name)
        if options.output is None:
            print(text, end="")
        else:
            write_file(options.output, text.encode("utf-8"))
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    if options.output is not None:
        print(f"wrote {options.output}")
        for line in (
            *converted.notes,
            *(f"left out: {key}={value}" for key, value in converted.left_out.items()),
        ):
            print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
