"""Write the programs that come with the package: those of the default models, see framework/workflow/shipped.py.

python tools/packaging/programs.py            before a release, and whenever a first start should be fast again
python tools/packaging/programs.py --check    exit status 1 and the changed files, where they hold no more
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

DEFAULTS = ("pp_ocrv6_small",)


def main() -> int:
    from framework.workflow import shipped
    from framework.workflow.export import export_config

    if "--check" in sys.argv[1:]:
        stale = shipped.stale_sources()
        print("\n".join(stale) or "the shipped programs hold")
        return 1 if stale else 0
    with tempfile.TemporaryDirectory() as home:
        os.environ["OAR_HOME"] = home
        with shipped.collect_programs() as programs:
            for name in DEFAULTS:
                export_config(name)
        shipped.write_programs(programs)
    print(f"{len(programs)} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
