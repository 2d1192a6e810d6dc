"""A plugin of pytest for runs in Triton's interpreter, by which they take little more than half.

The interpreter puts its own operators in the place of those of the language at each launch, and
again at each call of a function in a launch, where they mostly are already.
"""

from functools import cache
from typing import Any

import triton.language as tl
from triton.runtime import interpreter


@cache
def _languages(function: Any) -> list[Any]:
    """Return the modules of operators that a function sees."""
    seen = function.__globals__.values()
    return [module for module in (tl, tl.core) if any(value is module for value in seen)]


def _call(self: interpreter.InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
    if any(tl.core.is_builtin(module.load) for module in _languages(self.fn)):
        interpreter._patch_lang(self.fn)
    return self.rewrite()(*args, **kwargs)


interpreter.InterpretedFunction.__call__ = _call
