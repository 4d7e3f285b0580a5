"""What probes do against what they say: the chain, work that grows with `steps`, and traffic
counted by hand.
"""

from contextlib import nullcontext

import numpy as np
import pytest

from tests.oracle import LINE
from tests.raw import Arena, Refused


def probe(raw, op, isa, **fields):
    words = {"op": raw.word("op", op), "isa": raw.word("isa", isa)}
    return raw.ffi.new("kvb_probe *", words | fields)


def run_once(raw, team, op, isa, **fields):
    team.do("probe", probe(raw, op, isa, **fields))


def links(raw, arena) -> np.ndarray:
    """Return the line that each line leads to."""
    base = int(raw.ffi.cast("uintptr_t", arena.base))
    return (raw.bytes_at(arena.base, arena.size).view(np.uint64)[:: LINE // 8] - base).astype(
        np.int64
    ) // LINE


@pytest.mark.parametrize("lines", [1, 2, 3, 64, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_the_chain_visits_every_line(raw, lines, seed):
    with Arena(raw, lines * LINE) as arena:
        raw.check(raw.lib.kvb_chain(arena.base, lines * LINE, seed))
        to, at, seen = links(raw, arena), 0, set()
        while at not in seen:
            seen.add(at)
            at = int(to[at])
        assert at == 0 and seen == set(range(lines))


@pytest.mark.parametrize("steps", [1, 2, 7, 64, 100])
def test_a_chase_takes_as_many_steps_as_it_says(raw, team, steps):
    """A chase goes on where it stopped. If the link of that line is broken, the next run is
    refused; other broken links are not noticed.
    """
    lines = 200
    with Arena(raw, lines * LINE) as arena:
        raw.check(raw.lib.kvb_chain(arena.base, lines * LINE, 5))
        to, stopped = links(raw, arena), 0
        for _ in range(steps):
            stopped = int(to[stopped])
        words = raw.bytes_at(arena.base, arena.size).view(np.uint64)[:: LINE // 8]
        right = words.copy()
        for broken in (stopped, (stopped + 1) % lines, int(to[stopped])):
            words[:] = right
            args = probe(raw, "latency", "scalar", a=arena.base, bytes=lines * LINE, steps=steps)
            with raw.task("probe", args, 1) as task:
                team.run(task)
                words[broken] = 0
                ends = pytest.raises(Refused, match="not a chain any more")
                with ends if broken == stopped else nullcontext():
                    team.run(task)


@pytest.mark.parametrize("op", ["copy", "copy_nt"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("distance", [0, 2048])
def test_a_copy_sweeps_as_often_as_it_says(raw, team, isa, op, steps, distance):
    """The target is one line lower: each sweep moves all lines down by one."""
    lines, more = 41, 8
    with Arena(raw, (lines + more) * LINE) as arena:
        data = raw.bytes_at(arena.base, arena.size).reshape(-1, LINE)
        data[:] = np.arange(len(data))[:, None]
        fields = {
            "a": arena.base,
            "b": arena.base + LINE,
            "bytes": lines * LINE,
            "steps": steps,
            "distance": distance,
        }
        run_once(raw, team, op, isa, **fields)
        last = lines  # no sweep writes it
        assert data[:lines, 0].tolist() == [min(at + max(1, steps), last) for at in range(lines)]


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_triad_sweeps_as_often_as_it_says(raw, team, isa, steps):
    """The target is the first source: each sweep adds three times the second one."""
    lines = 41
    with Arena(raw, lines * LINE) as one, Arena(raw, lines * LINE) as other:
        floats = [raw.bytes_at(arena.base, arena.size).view(np.float32) for arena in (one, other)]
        floats[0][:], floats[1][:] = np.arange(lines * 16), np.arange(lines * 16) + 7
        run_once(
            raw,
            team,
            "triad",
            isa,
            a=one.base,
            b=one.base,
            c=other.base,
            bytes=one.size,
            steps=steps,
        )
        assert np.array_equal(floats[0], np.arange(lines * 16) + 3.0 * max(1, steps) * floats[1])


TRAFFIC = {  # bytes moved, and FLOPs, of a sweep of 640 bytes: 160 floats
    "read": (640, 0),
    "write": (640, 0),
    "write_nt": (640, 0),
    "copy": (1280, 0),
    "copy_nt": (1280, 0),
    "triad": (1920, 320),
}


@pytest.mark.parametrize("op", TRAFFIC)
def test_traffic_by_hand(raw, op):
    moved, flops = TRAFFIC[op]
    with Arena(raw, 640) as arena:
        for steps in (0, 1, 3):
            fields = {
                "a": arena.base,
                "b": arena.base,
                "c": arena.base,
                "bytes": 640,
                "steps": steps,
            }
            found = raw.traffic("probe", probe(raw, op, "scalar", **fields), 1)
            sweeps = max(1, steps)
            assert found.compulsory == found.issued == found.line == sweeps * moved
            assert found.flops == sweeps * flops
            assert found.ai == flops / moved


def test_traffic_of_a_chase(raw):
    with Arena(raw, 640) as arena:
        raw.check(raw.lib.kvb_chain(arena.base, 640, 1))
        args = probe(raw, "latency", "scalar", a=arena.base, bytes=640, steps=11)
        found = raw.traffic("probe", args, 1)
        assert (found.issued, found.line) == (11 * 8, 11 * 64)
