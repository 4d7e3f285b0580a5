"""Decode attention over the KV cache, measured against the memory bandwidth of the machine it runs on."""

from importlib import import_module

_HOMES = {"Cache": "kvbench.native", "Pool": "kvbench.native", "load": "kvbench.results", "sweep": "kvbench.session"}


def __getattr__(name: str) -> object:
    """Import what is asked for only then: `kvbench --help` needs none of it."""
    if name == "__version__":
        return import_module("importlib.metadata").version("kvbench")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "native":
        return import_module("kvbench.native")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
