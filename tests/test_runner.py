"""Launches as processes: their records, how they die, that none is left behind, and that no visit
is made twice.
"""

import json
import os
import random
import subprocess
import time
from dataclasses import replace

import pytest

from kvbench.machine import describe
from kvbench.model import Job, Plan, Probe, Record, Sample
from kvbench.native import default_library
from kvbench.runner import Budget, Killed, launch, run
from kvbench.store import plain
from tests.processes import gone

HERE = describe()
READ = Probe("read", "scalar", (min(os.sched_getaffinity(0)),), "base", 6 * 64 * 100)
PLAN = Plan((READ, replace(READ, op="copy"), replace(READ, op="triad")), 2, 2, 0.0005, 7)


def job(plan=PLAN, number=0, part=0):
    return Job(plan, number, part, plan.points, HERE, {}, "")


def test_a_launch_answers_for_every_point():
    records = list(launch(job(number=1)))
    assert {record.point for record in records} == set(PLAN.points)
    for record in records:
        assert record.error == "" and record.launch == 1
        plain = [sample for sample in record.samples if sample.program == "point"]
        assert len(plain) == 2 and all(sample.seconds > 0 for sample in record.samples)
        assert record.traffic["point"].bytes_compulsory == READ.bytes * record.steps
        assert record.memory["resident_bytes"] > 0
        assert record.wall > sum(sample.seconds for sample in record.samples)
        assert abs(record.began - time.time()) < 600


def test_a_worker_is_ended_when_its_time_is_up():
    """During a visit of an hour. That is not an error of the point, and gives no record."""
    long = replace(PLAN, points=(READ,), samples=3600, sample_time=1.0)
    assert list(launch(replace(job(long), until=time.monotonic() + 1.5))) == []
    budget = Budget(1.5)
    assert list(run(long, HERE, {}, budget=budget)) == [] and budget.spent


def test_memory_is_that_of_the_worker():
    """Not that of the larger process that it was forked from."""
    held = b"k" * (512 << 20)
    assert all(0 < record.peak < len(held) for record in launch(job()))


# ---- the order of a run, with a made-up executor -------------------------------------------------


def answered(job, point, **facts):
    sample = Sample("point", 0, 5 + job.launch, 1.0, (), 0.0, 0, 0)
    return Record(job.launch, point, (sample,), {}, {}, part=job.part, **facts)


def everything(job):
    for point in job.points:
        yield answered(job, point)


def test_launches_follow_one_another():
    seen = list(run(PLAN, HERE, {}, everything))
    assert [(r.launch, r.point) for r in seen] == [
        (n, point) for n in (0, 1) for point in PLAN.points
    ]


def test_more_decides_what_launches_visit():
    asked = []
    few = {2: PLAN.points[1:], 3: PLAN.points[:1], 4: ()}
    seen = list(
        run(
            PLAN,
            HERE,
            {},
            everything,
            more=lambda number: asked.append(number) or few.get(number, PLAN.points),
        )
    )
    assert asked == [0, 1, 2, 3, 4]
    assert [(r.launch, r.point) for r in seen] == [
        (n, p) for n in range(4) for p in few.get(n, PLAN.points)
    ]


def test_what_is_done_is_not_done_again():
    """After an interruption at any number of visits, the rest completes the run as a new part of
    the broken launch.
    """
    whole = list(run(PLAN, HERE, {}, everything))
    for cut in range(len(whole) + 1):
        done = whole[:cut]
        rest = list(run(PLAN, HERE, {}, everything, done))
        assert sorted((r.launch, r.point.name) for r in done + rest) == sorted(
            (r.launch, r.point.name) for r in whole
        )
        begun = {r.launch for r in done}
        assert all(r.part == (1 if r.launch in begun else 0) for r in rest)


def test_a_point_that_failed_is_not_tried_again():
    tried = []

    def wrong(job):
        for point in job.points:
            tried.append((job.launch, point.op))
            yield (
                answered(job, point, error="off by 3")
                if point.op == "copy"
                else answered(job, point)
            )

    seen = list(run(PLAN, HERE, {}, wrong))
    assert tried.count((0, "copy")) == 1 and (1, "copy") not in tried
    again = next(r for r in seen if r.launch == 1 and r.point.op == "copy")
    assert again.error == "given up after launch 0: off by 3"
    assert len(seen) == 6


def test_a_point_that_lacked_memory_is_tried_in_the_next_launch():
    """When there is memory, it has numbers."""

    def short(job):
        for point in job.points:
            if point.op == "copy" and not job.launch:
                yield replace(
                    answered(job, point),
                    samples=(),
                    error="needs 1 GiB, 1 MiB are free",
                    short=True,
                )
            else:
                yield answered(job, point)

    seen = list(run(PLAN, HERE, {}, short))
    assert [r.error for r in seen if r.point.op == "copy"] == ["needs 1 GiB, 1 MiB are free", ""]
    later = list(run(PLAN, HERE, {}, everything, [r for r in seen if not r.launch]))
    assert not any(r.error for r in later) and len(later) == 3


def test_a_dead_process_is_replaced_for_the_rest():
    """The process dies at every point in turn. That point becomes an error, and all others are
    measured.
    """

    def dying(job):
        yield answered(job, job.points[0])
        if len(job.points) > 1:
            yield answered(job, job.points[1], error="signal 11")

    seen = list(run(replace(PLAN, launches=1), HERE, {}, dying))
    expected = [("read", False, 0), ("copy", True, 0), ("triad", False, 1)]
    assert [(r.point.op, bool(r.error), r.part) for r in seen] == expected


def test_a_process_killed_once_gets_a_second_chance():
    died = []

    def killed(job):
        for point in job.points:
            if point.op == "copy" and len(died) < times:
                died.append(point)
                raise Killed(point)
            yield answered(job, point)

    times = 1
    seen = list(run(replace(PLAN, launches=1), HERE, {}, killed))
    assert [(r.point.op, r.error) for r in seen] == [("read", ""), ("copy", ""), ("triad", "")]
    died.clear()
    times = 2
    seen = list(run(replace(PLAN, launches=1), HERE, {}, killed))
    assert [(r.point.op, "killed twice" in r.error) for r in seen] == [
        ("read", 0),
        ("copy", 1),
        ("triad", 0),
    ]


def test_an_executor_that_does_nothing_is_not_asked_for_ever():
    seen = list(run(replace(PLAN, launches=1), HERE, {}, lambda job: iter(())))
    assert len(seen) == 3 and all("ended without it" in r.error for r in seen)


# ---- processes that misbehave --------------------------------------------------------------------

ANSWER = json.dumps({"record": plain(Record(0, READ, (), {}, {})) | {"point": READ.name}})
VISITING = json.dumps({"visiting": READ.name})
HEAR = "import os, sys, time; sys.stdin.readline(); say = lambda line: print(line, flush=True);"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("sys.exit('no such thing')", "exit code 1: no such thing"),
        ("", "exit code 0: it said nothing"),
        ("os.kill(os.getpid(), 11)", "was killed by SIGSEGV: it said nothing"),
    ],
)
def test_a_worker_that_dies_before_any_visit_fails_them_all(program, said):
    records = list(launch(job(), ("-c", HEAR + program)))
    assert {record.point for record in records} == set(PLAN.points) and len(records) == len(
        PLAN.points
    )
    assert all(said in record.error for record in records)


STUTTER = "while True: print('.', end='', flush=True); time.sleep(0.01)"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 4)", "was killed by SIGILL"),
        ("time.sleep(600)", "no sign of life for 0.5 s"),
        (STUTTER, "no sign of life for 0.5 s"),  # bytes without a line end are not a record
    ],
)
def test_a_worker_that_dies_or_hangs_in_a_visit_fails_that_one(end, said):
    plan = replace(PLAN, patience=0.5 if "life" in said else PLAN.patience)
    (record,) = launch(job(plan), ("-c", f"{HEAR} say({VISITING!r})\n{end}"))
    assert record.point == READ and said in record.error


@pytest.mark.parametrize("signal", [9, 11])
def test_a_worker_that_dies_between_visits_fails_none(signal):
    """The next worker does what it left undone."""
    (record,) = launch(
        job(),
        ("-c", f"{HEAR} say({ANSWER!r}); sys.stdin.readline(); os.kill(os.getpid(), {signal})"),
    )
    assert record.point == READ and not record.error


def test_a_worker_that_is_killed_says_where():
    with pytest.raises(Killed) as caught:
        list(launch(job(), ("-c", f"{HEAR} say({VISITING!r}); os.kill(os.getpid(), 9)")))
    assert caught.value.point == READ


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 11)", "time.sleep(600)"])
def test_nobody_is_left_of_a_worker_that_began_others(end, tmp_path):
    """A child holds its output open. How the worker ended is still reported."""
    mark, plan = tmp_path / "pid", replace(PLAN, patience=3.0)
    child = (
        f"child = os.fork(); child or time.sleep(600); open({str(mark)!r}, 'w').write(str(child))"
    )
    (record,) = launch(job(plan), ("-c", f"{HEAR} say({VISITING!r}); {child}; {end}"))
    assert record.point == READ and ("SIGSEGV" if "kill" in end else "it hangs") in record.error
    assert gone(mark.read_text())


def test_a_worker_that_does_not_listen_is_stopped():
    """Its job is larger than a pipe's buffer."""
    asked = replace(job(replace(PLAN, patience=0.5)), references="x" * (1 << 20))
    records = list(launch(asked, ("-c", "import time; time.sleep(600)")))
    assert len(records) == 3 and all(
        "no sign of life for 0.5 s" in record.error for record in records
    )


NONSENSE = [
    "hello",
    "\xff",
    "{}",
    "[1]",
    "null",
    '{"visiting": "nobody"}',
    '{"record": {"launch": 0}}',
]
NONSENSE += [ANSWER.replace('"traffic": {}', '"traffic": []'), ANSWER.replace("read.", "write.")]


@pytest.mark.parametrize("line", NONSENSE)
def test_a_worker_that_talks_nonsense_is_stopped(line):
    records = list(launch(job(), ("-c", f"{HEAR} say({line!r}); time.sleep(60)")))
    assert {record.point for record in records} == set(PLAN.points)
    assert all("not a record" in record.error for record in records)


def test_it_goes_on_only_when_it_is_told_to():
    """A record must be stored before the next visit begins. The worker reports how many go-aheads
    it had received by then.
    """
    second = json.loads(ANSWER)
    second["record"]["point"] = PLAN.points[1].name
    program = (
        f"{HEAR} say({ANSWER!r}); sys.stdin.readline(); say({json.dumps(second)!r}); time.sleep(60)"
    )
    records = launch(job(), ("-c", program))
    assert next(records).point == READ
    assert next(records).point == PLAN.points[1]
    records.close()


def test_an_abandoned_launch_kills_its_worker(tmp_path):
    mark = tmp_path / "pid"
    program = (
        f"{HEAR} open({str(mark)!r}, 'w').write(str(os.getpid())); say({ANSWER!r}); time.sleep(60)"
    )
    records = launch(job(), ("-c", program))
    next(records)
    records.close()
    assert gone(mark.read_text())


def test_the_worker_dies_with_its_parent():
    """Also during a visit, when nobody reads its pipes: the parent is killed while the first point
    is measured.
    """
    plan = replace(PLAN, points=(READ,), samples=1, sample_time=5.0)
    program = (
        "import json, sys; from kvbench import runner; from kvbench.model import Job; from"
        " kvbench.store import read;records = runner.launch(read(Job,"
        " json.loads(sys.argv[1])));Popen = runner.subprocess.Popen\ndef told(*a, **k):\n    worker"
        " = Popen(*a, **k); print(worker.pid, flush=True); return worker\nrunner.subprocess.Popen ="
        " told; next(records)"
    )
    with subprocess.Popen(
        [os.sys.executable, "-c", program, json.dumps(plain(job(plan)))],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        worker = int(parent.stdout.readline())
        time.sleep(random.Random(1).uniform(0.5, 1.0))
        parent.kill()
    assert gone(worker)


def test_a_point_that_cannot_be_measured_is_an_error_of_its_own():
    """It asks for more memory than any machine has."""
    impossible = replace(READ, bytes=1 << 60)
    records = {r.point: r for r in launch(job(replace(PLAN, points=(READ, impossible))))}
    assert records[READ].error == ""
    assert records[impossible].error and not records[impossible].samples


def test_every_launch_has_an_order_of_its_own_and_keeps_it():
    points = tuple(replace(READ, bytes=6 * 64 * n) for n in range(1, 9))
    plan = replace(PLAN, points=points, samples=1, sample_time=1e-5)
    first, again, second = ([r.point for r in launch(job(plan, number))] for number in (0, 0, 1))
    assert first == again != second
    assert set(first) == set(second) == set(points)


def test_every_probe():
    sizes = dict.fromkeys(
        ("read", "write", "write_nt", "copy", "copy_nt", "triad", "latency"), READ.bytes
    )
    sizes |= {"flops": 0, "clock": 0}
    points = tuple(
        replace(READ, op=op, bytes=size, isa=default_library().isa()) for op, size in sizes.items()
    )
    records = {record.point: record for record in launch(job(replace(PLAN, points=points)))}
    assert records.keys() == set(points)
    assert all(record.error == "" and record.steps > 0 for record in records.values())
