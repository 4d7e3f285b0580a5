"""Arithmetic on named whole numbers, as data files write it: names, numbers, + - * //, max and min."""

import ast
import operator
from collections.abc import Mapping

ALLOWED = "names, whole numbers, + - * //, max and min"
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
_CALLS = {"max": max, "min": min}


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """ValueError, with what is wrong, for anything else."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is no expression") from None
    try:
        return _value(tree.body, names)
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None
    except RecursionError:
        raise ValueError("the expression is too deep") from None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"{name!r} is not one of: {', '.join(names)}")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if name in _CALLS:
            return _CALLS[name](_value(arg, names) for arg in args)
    raise ValueError(f"{ast.unparse(node)!r} is more than {ALLOWED}")
