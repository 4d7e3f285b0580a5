"""Decoders and machines to size for."""

from dataclasses import asdict, replace

from kvbench.model import Ceiling
from kvbench.model.size import Decoder
from kvbench.sizing.known import KnownMachine
from kvbench.sizing.sized import size_of
from kvbench.suite import model
from tests.made_run import MACHINE, READ
from tests.sizing.calculator import Case

MIB, GIB = 1 << 20, 1 << 30
NOWHERE = KnownMachine("here", MACHINE, (0, 1))


def of_model(name, **facts):
    """The case of a published model."""
    known = model(name)
    shape = {
        key: getattr(known, key)
        for key in ("layers", "q_heads", "kv_heads", "head_dim", "window", "window_every")
    }
    return Case(**shape | facts)


def decoder(case):
    return Decoder(model="", **asdict(case))


def sized(case, known=NOWHERE, **wanted):
    return size_of(decoder(case), known, **wanted)


def read_rate(footprint, level, gbps):
    probe = replace(READ, bytes=footprint)
    return Ceiling("mine", probe, level, gbps, 0.9 * gbps, 1.1 * gbps, ((gbps,),), True, 1.0)


MEASURED = replace(
    NOWHERE,
    reads=(
        read_rate(MIB, "L2", 160.0),
        read_rate(8 * MIB, "L3", 80.0),
        read_rate(16 * MIB, "L3", 60.0),
        read_rate(256 * MIB, "DRAM", 20.0),
        read_rate(512 * MIB, "DRAM", 19.0),
    ),
)
