"""python -m framework.paddle SCRIPT …: run a program that says `import paddle`."""

import sys

from framework.paddle.run import main

sys.exit(main())
