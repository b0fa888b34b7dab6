"""Baselines that a test names, read from its source before anything is asked."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

_CHECK = "assert_no_regression"


def named_baselines(test: Callable[..., Any]) -> tuple[str, ...]:
    """Return the baselines that a test function names as plain text, in their order.

    What is made at run time (a variable, a formatted text) is not seen: it is told of later.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(test)))
    except (OSError, TypeError, SyntaxError):  # no source, or not one that stands by itself
        return ()
    found = [_baseline(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _baseline(call: ast.Call) -> str | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != _CHECK:
        return None
    given = [word.value for word in call.keywords if word.arg == "baseline"]
    for node in (given + call.args[1:2])[:1]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
    return None
