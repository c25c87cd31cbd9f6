"""Put an adapter into the weights of its model.

python tools/merge_lora.py --model models/llama --adapter output/adapter --output merged
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.core.bounded import SETTINGS, read_text
from framework.core.errors import OarError
from framework.nn.adapters import merge_adapters
from nlp import llm
from nlp.adapter_files import PEFT_CONFIG, read_adapter


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where a folder cannot be read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="the model's folder; default: as the adapter names it")
    parser.add_argument("--adapter", type=Path, required=True, help="a folder of peft or PaddleNLP")
    parser.add_argument("--output", type=Path, required=True, help="the folder to write")
    parser.add_argument(
        "--dtype", choices=["float32", "bfloat16", "float16"], help="of the weights; default: as they are"
    )
    options = parser.parse_args(arguments)
    try:
        base = options.model
        if base is None:
            settings = json.loads(
                read_text(options.adapter / PEFT_CONFIG, SETTINGS, "settings of an adapter")
            )
            base = settings.get("base_model_name_or_path") or ""
        opened = llm.load(base, options.dtype)
        model = read_adapter(opened.model, options.adapter)
        names = merge_adapters(model)
        model.config = dataclasses.replace(model.config, adapter=None)
        folder = dataclasses.replace(opened, model=model).save(options.output)
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"wrote {folder}: adapters of {len(names)} layers are in its weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
