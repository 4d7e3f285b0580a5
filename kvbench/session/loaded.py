"""The decodes of suite `latency` with a chasing thread beside them, for other commands that measure
them: the profile of a machine, and a score.
"""

from dataclasses import replace
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model import Machine
from kvbench.model.chases import NODE
from kvbench.plan import Site, Sweep, expand
from kvbench.session.options import Options

SUITE = "latency"
_CHASE = f"chase={NODE}"


def decodes(machine: Machine, memory: int, threads: str, quick: bool, **asked: Any) -> Sweep:
    """Plan the decodes without the suite's witnesses. memory: bytes that a point may take. quick:
    only the decode of f16. asked: fields of Options. Raises BadArgument if no decode can have a
    chase.
    """
    axes = _CHASE, f"threads={threads}", *(["dtype=f16"] if quick else [])
    options = Options(SUITE, axes=axes, **asked)
    sweep = expand(options.asked_suite, Site(machine, memory, options.isa), options.seed)
    found = {point: needed for point, needed in sweep.needs.items() if point.op == "decode"}
    if not found:
        why = dict.fromkeys(f"{skip.reason}: {skip.detail}" for skip in sweep.skips)
        raise BadArgument(
            f"no thread can chase beside a decode: {'; '.join(why)}",
            "use fewer --threads, or leave out --loaded",
        )
    return replace(sweep, needs=found)


def of_kernel(kernel: str, launches: int, asked: dict[str, Any]) -> Options:
    """Options for the decode of one kernel of the library."""
    _, variant, layout, dtype, _ = kernel.split(".")
    axes = _CHASE, f"variant={variant}", f"layout={layout}", f"dtype={dtype}"
    return Options(SUITE, axes=axes, only=(f"{kernel}/*",), launches=launches, **asked)
