"""A thread that chases beside a point: who does what, in which order, and what the record holds."""

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import psutil
import pytest

from kvbench.errors import WrongAnswer
from kvbench.machine import describe
from kvbench.model import DataCache, Fact, Plan, Record, Times
from kvbench.native import default_library
from kvbench.plan.needs import needs_here
from kvbench.store import plain, read
from kvbench.worker import chasing, ground
from kvbench.worker.chasing import Chasing, cpus_of
from kvbench.worker.ground import Ground
from kvbench.worker.launch import launch
from kvbench.worker.loop import COLD, rounds
from tests import made_run
from tests.made_job import CPU, bench, job
from tests.processes import gone

HERE = describe()
FAR = 1 << 20  # bytes, on a machine whose L3 is a quarter of that
CACHES = tuple(DataCache(level, size << 10, HERE.allowed) for level, size in ((1, 32), (3, 256)))
SMALL = replace(HERE, caches=CACHES)
DECODE = replace(
    made_run.DECODE,
    shape=replace(made_run.DECODE.shape, q_heads=4, head_dim=32, context=96, capacity=96),
    cpus=(CPU,),
    pages="base",
    isa=default_library().isa(),
    chase="node",
)
APPEND = replace(DECODE, op="append", variant="-")
ALONE = replace(DECODE, chase="none")
OUTER = ["idle", "spin"], ["idle_after", "spin_after"]
LOADED = [
    f"loaded_{load}.{share}" for load in ("read", "copy", "point") for share in (25, 50, 75, 100)
]
CHASES = {*OUTER[0], *OUTER[1], *LOADED}
TWO = pytest.mark.skipif(len(HERE.allowed) < 2, reason="no core is left for a chase")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", FAR)
    monkeypatch.setattr(chasing, "SECONDS", 0.0002)


def asked(points, samples=2, machine=SMALL):
    needs = needs_here(points, machine)
    found = job(Plan(tuple(points), 1, samples, 0.0002, 1))
    return replace(found, machine=machine, needs={each.name: needs[each] for each in points})


def visits(points, **how):
    seen = launch(default_library(), asked(points, **how))
    return {found.point: found for found in seen if isinstance(found, Record)}


# ---- what is asked of whom -----------------------------------------------------------------------


class Played:
    """A team that records what runs beside what."""

    def __init__(self):
        self.ran = []

    def run(self, *tasks, passes=1, between=None, load=None):
        self.ran.append(load)
        steps = tuple(4096e-7 * (1 + step) for step in range(passes))
        return Times(sum(steps), steps, (1.0,), (), 0, 0, load_passes=2, load_seconds=1e-3)


def cores(number, allowed):
    """The rate of so many cores, each 1 GB/s, that memory cuts at `allowed`."""
    return lambda pause: min(number / (1 + pause), allowed)


@pytest.mark.parametrize(("number", "allowed"), [(1, 10), (4, 4), (64, 16), (64, 3)])
def test_a_load_moves_the_asked_share_of_its_full_rate(number, allowed):
    """Also where a part of the cores saturates memory: with 64 cores and memory for 16, a pause of
    three units, which would be 25 % of the time, still moves the full rate.
    """
    rate = cores(number, allowed)
    found = chasing.pauses(rate)
    assert list(found) == [25, 50, 75, 100] and not found[100]
    for share, pause in found.items():
        assert rate(pause) == pytest.approx(rate(0) * share / 100, rel=0.03)


def test_pauses_end_where_the_library_ends_them():
    assert chasing.pauses(lambda pause: 1.0)[25] <= 1000


@pytest.fixture
def chased(monkeypatch):
    """A bench and its chase, on the point's own CPU: nothing runs that would need another."""
    monkeypatch.setattr(chasing, "chaser", lambda machine, cpus, where: cpus[0])
    monkeypatch.setattr(Chasing, "_moved", lambda self, load, pause: cores(1, 10)(pause))
    with Ground(default_library(), SMALL) as own, bench(DECODE, own) as found:
        yield found, Chasing(found)


def test_a_round_begins_and_ends_with_the_chase_alone_and_beside_spinning(chased):
    own, chase = chased
    team = Played()
    own = [*chase.programs(1e-3), replace(own.pace, warm=False)]
    programs = [replace(each, team=team) for each in own]
    counts = {each.name: 40 for each in programs}
    samples = list(rounds(programs, 6, 1e-3, 3, counts))
    for number in range(6):
        names = [sample.program for sample in samples if sample.round == number]
        assert sorted(names[:2]) == OUTER[0] and sorted(names[-2:]) == OUTER[1]
        assert sorted(names[2:-2]) == sorted([*LOADED, "fma"])
    assert len({tuple(s.program for s in samples if s.round == n) for n in range(6)}) == 6
    steps = [1e-7 * (1 + step) for step in range(COLD, COLD + 40)]
    for sample, load in zip(samples, team.ran, strict=True):
        if sample.program in CHASES:
            assert sample.latency == pytest.approx((steps[20], steps[38]))
            moved = load and 2 * load.tasks[0].traffic().bytes_compulsory / 1e-3 / 1e9
            assert sample.load == pytest.approx(moved or 0.0)
        else:
            assert load is None and sample.latency == ()


def test_loads_are_paced_and_no_cache_holds_what_they_move(chased):
    own, chase = chased
    programs = {each.name: each for each in chase.programs(1e-3)}
    assert all(each.load is None for name, each in programs.items() if "idle" in name)
    for name in LOADED:
        load, share = programs[name].load, float(name.rpartition(".")[2])
        assert 1 / (1 + load.pause) == pytest.approx(share / 100)
        moved = [task.traffic().bytes_compulsory for task in load.tasks]
        assert load.team is own.team and len(set(moved)) == 1
        assert sum(moved) > FAR * 0.99 and FAR / 4 <= load.ahead * moved[0] < FAR / 2
    assert programs["loaded_point.50"].load.tasks == own.own.tasks
    spin = programs["spin"].load
    assert spin == programs["spin_after"].load and spin.pause == 0
    assert spin.tasks[0].traffic().bytes_line % (16 << 10) == 0
    assert chase.facts.bytes >= FAR and chase.facts.loads == 4096


def test_answers_of_the_point_as_a_load_are_checked(chased):
    own, chase = chased
    programs = [own.own, *chase.programs(1e-3)]
    counts = dict.fromkeys((each.name for each in programs), 1)

    def spoils(*tasks, load=None, **how):
        if load and load.tasks == own.own.tasks:
            own.queries.out[-1] = 1e3
        return Played().run(*tasks, load=load, **how)

    played = [replace(each, team=SimpleNamespace(run=spoils)) for each in programs[1:]]
    with pytest.raises(WrongAnswer, match="is off by"):
        own.measured([own.own, *played], 1, 1e-3, passes=counts)


# ---- visits --------------------------------------------------------------------------------------


@TWO
def test_a_visit_has_all_of_it(monkeypatch):
    """Its cycle is linked once, and the same point without a chase is a separate visit."""
    linked, real = [], ground.chain
    monkeypatch.setattr(ground, "chain", lambda *how: linked.append(how) or real(*how))
    records = visits([DECODE, APPEND, ALONE])
    assert len(linked) == 1 and len(records) == 3
    for point, beside in (
        (DECODE, {"point", "twin", "twin_ahead", "core", "memory", "fma"}),
        (APPEND, {"point", "copy", "copy_nt", "fma"}),
    ):
        record = records[point]
        assert not record.error and record.max_abs_err < 1e-2
        assert {sample.program for sample in record.samples} == record.traffic.keys()
        assert record.traffic.keys() == beside | CHASES
        assert record.chase.cpu in set(HERE.allowed) - {CPU} and record.chase.bytes >= FAR
        for sample in record.samples:
            is_chase = sample.program in CHASES
            assert len(sample.latency) == 2 * is_chase and not sample.pass_seconds
            assert (sample.load > 0) == (is_chase and "idle" not in sample.program)
            if is_chase:
                half, most = sample.latency
                assert 0 < half <= most
                assert sample.seconds >= 0.49 * half * 4096 * sample.passes
                assert not sample.off or sample.program == "idle"
        for number in range(2):
            own = {s.passes for s in record.samples if s.round == number and s.program in CHASES}
            assert len(own) == 1
        assert read(Record, msgspec.json.decode(msgspec.json.encode(plain(record)))) == record
    assert records[ALONE].chase is None and not CHASES & records[ALONE].traffic.keys()


def test_all_busy_cpus_are_watched():
    known = {"quota": Fact(None, "", "high"), "core_kinds": Fact({}, "", "high")}
    large = made_run.machine(4, **known)
    assert cpus_of(replace(DECODE, cpus=(0,)), large) == (0, 3)
    assert cpus_of(replace(ALONE, cpus=(0,)), large) == (0,)
    assert cpus_of(replace(DECODE, cpus=(0, 1, 2, 3)), large) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "leaves no core of its NUMA nodes free for a chase (use fewer --threads)"),
        ({"chase": "remote"}, "no other NUMA node has a core that may chase"),
        ({"chase": "sibling"}, "no core of the point has an SMT sibling that may chase"),
        ({"op": "bulk", "variant": "plain"}, "beside decode or append, not beside bulk"),
        ({"residency": "evicted"}, "needs residency rotate, not evicted"),
        ({"between": 64}, "a chase allows no reads between passes"),
        ({"shape": replace(DECODE.shape, layers=3)}, "but 3 layers in turn may stay in caches"),
        ({"engine": "openvino", "schedule": "auto"}, "beside our kernels, not beside a peer's"),
    ],
)
def test_points_without_room_for_a_chase_are_refused(facts, said):
    """On one allowed CPU: each case gives a sentence, and the next point is measured."""
    one = replace(SMALL, allowed=(CPU,), cpus=tuple(c for c in SMALL.cpus if c.cpu == CPU))
    point = replace(DECODE, **facts)
    records = visits([point, ALONE], samples=1, machine=one)
    assert said in records[point].error and not records[point].samples
    assert not records[ALONE].error


# ---- the end of a process ------------------------------------------------------------------------


@TWO
def test_no_thread_is_left_of_a_killed_chase():
    """Also if its parent is killed, while two threads work."""
    text = msgspec.json.encode(plain(asked([DECODE], samples=100_000)))
    program = (
        "import json, sys; from kvbench import runner; from kvbench.model import Job; from"
        " kvbench.store import read; records = runner.launch(read(Job,"
        " json.loads(sys.stdin.read()))); Popen = runner.subprocess.Popen\ndef told(*a, **k):\n"
        "    worker = Popen(*a, **k); print(worker.pid, flush=True); return worker\n"
        "runner.subprocess.Popen = told; next(records)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as parent:
        parent.stdin.write(text)
        parent.stdin.close()
        worker = psutil.Process(int(parent.stdout.readline()))
        busy = lambda: sum(thread.user_time > 0.03 for thread in worker.threads()) > 2
        with suppress(psutil.NoSuchProcess):
            while not busy():
                time.sleep(0.01)
        assert worker.is_running()
        parent.kill()
    assert gone(worker.pid)
