"""Measure decode attention over the KV cache against the machine's memory bandwidth.

run = kvbench.load("runs/quick-...")   # or kvbench.sweep("quick")
run.points, run.ceilings, run.tokens(), run.plot("hero")
cache = kvbench.Cache(kv_heads=8, head_dim=128, capacity=4096, dtype="f16")
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Blocks": "kvbench.native",
    "Cache": "kvbench.native",
    "load": "kvbench.results",
    "sweep": "kvbench.session",
}
__all__ = [*_HOMES, "native"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: `kvbench --help` needs none of them."""
    if name == "__version__":
        return import_module("importlib.metadata").version("kvbench")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "native":
        return import_module("kvbench.native")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
