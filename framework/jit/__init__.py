"""Static graphs: `to_static` compiles a layer or a function, `save` and `load` keep a compiled program in a folder.

There is no rewriting of Python. Under `to_static` arrays are placeholders: shapes and plain attributes may steer
Python, values may not. A branch on a value fails with an error that names the line; `cond` and `while_loop` are the
way out.
"""

from framework.jit.static import InputSpec as InputSpec
from framework.jit.static import LoadedProgram as LoadedProgram
from framework.jit.static import cond as cond
from framework.jit.static import load as load
from framework.jit.static import save as save
from framework.jit.static import to_static as to_static
from framework.jit.static import while_loop as while_loop
