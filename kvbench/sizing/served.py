"""Predict a model's speed on a server that was not measured, from core speeds of a run: the slower
of memory and cores.
"""

from dataclasses import replace

from kvbench.errors import BadArgument
from kvbench.model.explained import Explained, Row, Served, Server
from kvbench.sizing.known import KnownMachine
from kvbench.units import GB

_MEMORY, _CORE = "memory", "core"


def serve(found: Explained, known: KnownMachine, cores: int, bandwidth: float) -> Explained:
    """The explanation, with tokens per second on a server. `bandwidth`: GB/s of all its cores
    together.
    """
    if found.decoder.latent:
        raise BadArgument(
            f"--cores: kvbench has no kernel for the rows of {found.model}", "leave it out"
        )
    cells = list[Served]()
    for row in found.rows:
        cells += _row(found, known, row, cores, bandwidth)
    if not cells:
        raise BadArgument(
            f"--cores: {found.machine} has no core speed of a decode from memory",
            "name a run of kvbench sweep quick with --machine",
        )
    lacking = {each.dtype for each in found.formats} - {each.dtype for each in cells}
    own = Server(cores, bandwidth, tuple(cells), tuple(sorted(lacking)))
    return replace(found, server=own)


def _row(
    found: Explained, known: KnownMachine, row: Row, cores: int, bandwidth: float
) -> list[Served]:
    cells = list[Served]()
    for cell in row.cells:
        decoder = replace(found.decoder, context=row.context, dtype=cell.dtype)
        if rates := known.core_rate(decoder):
            core, moved = rates
            far, near = moved * cell.bytes / (bandwidth * GB), cell.bytes / (core * cores * GB)
            cache, limit = max((far, _MEMORY), (near, _CORE))
            step = cache + (found.read or 0) / (bandwidth * GB)
            batch = decoder.batch
            cells.append(Served(row.context, cell.dtype, batch / cache, batch / step, limit))
    return cells
