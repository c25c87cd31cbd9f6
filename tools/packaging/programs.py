"""Write the programs and ONNX graphs that come with the package: those of the default models.

See framework/workflow/export/bundled.py. The graphs are compared with the programs in ONNX Runtime.

    python -m tools.packaging.programs            before a release, and whenever a first start should be fast again
    python -m tools.packaging.programs --check    exit status 1 and the changed files, where they hold no more
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

DEFAULTS = ("pp_ocrv6_small", "picodet_s_layout_synthetic")


def main() -> int:
    from framework.workflow.export import bundled
    from framework.workflow.export.export import export_config
    from framework.workflow.export.onnx import OnnxOptions

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        stale = bundled.stale_sources()
        print("\n".join(stale) or "the shipped programs hold")
        return 1 if stale else 0
    with tempfile.TemporaryDirectory() as home:
        os.environ["OAR_HOME"] = home
        with bundled.collect_programs() as collected:
            for name in DEFAULTS:
                export_config(name, onnx=OnnxOptions()).save(Path(home) / name)
        bundled.write_programs(collected)
    print(f"{len(collected.programs)} programs, {len(collected.graphs)} graphs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
