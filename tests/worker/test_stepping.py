"""A whole step on the bench: what is timed, and faults of all kinds that it must notice."""

import math
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from kvbench import regime
from kvbench.errors import Unsupported, WrongAnswer
from kvbench.machine import describe
from kvbench.model import Contrast, Plan, Record
from kvbench.native import Library, Series, default_library
from kvbench.plan import needs_here
from kvbench.plan.needs import members
from kvbench.plan.site import kernels_of
from kvbench.plan.steps import parts
from kvbench.worker.answers import Answers
from kvbench.worker.ground import Ground
from kvbench.worker.launch import launch
from kvbench.worker.stepping import Layers, Stepping
from kvbench.worker.steproom import StepRoom
from tests.made_job import job
from tests.worker.test_bench import DECODE, SHAPE

LAYERS, WEIGHTS = 5, 64 * 700
STEP = replace(
    DECODE,
    op="step",
    layout="paged",
    block_tokens=4,
    between=WEIGHTS,
    shape=replace(SHAPE, batch=3, layers=LAYERS, window=16, full_every=2, lengths="listed:9,40,31"),
)


@pytest.fixture
def machine(monkeypatch):
    """A machine with unknown caches: more than a few bytes are memory."""
    monkeypatch.setattr(regime, "FAR_BYTES", 1 << 20)
    return replace(describe(), caches=())


@contextmanager
def stepping(machine, point=STEP):
    needed = needs_here([point], machine)[point]
    with (
        Ground(default_library(), machine) as ground,
        StepRoom(point, needed, ground) as room,
        Stepping(point, needed, room, Answers()) as found,
    ):
        yield found


def test_programs_are_the_step_its_parts_and_a_read_of_as_many_bytes(machine):
    with stepping(machine) as found:
        programs = {program.name: program.traffic() for program in found.programs}
        assert programs.keys() == {"point", "appends", "decodes", "weights", "memory", "fma"}
        each = [programs[name] for name in ("appends", "decodes", "weights")]
        assert programs["point"].bytes_compulsory == sum(one.bytes_compulsory for one in each)
        assert programs["weights"].bytes_compulsory == LAYERS * WEIGHTS
        token = 2 * 3 * 2 * 32  # K and V of each sequence and KV head
        assert programs["appends"].bytes_compulsory >= LAYERS * token * 2
        tokens = 2 * (9 + 40 + 31) + 3 * (9 + 16 + 16)  # every second layer attends to all
        assert programs["decodes"].bytes_kv == tokens * 2 * 2 * 32 * 2
        more = programs["memory"].bytes_compulsory - programs["point"].bytes_compulsory
        assert 0 <= more < 64
        ends = [layers for part in parts(STEP) for layers in part.layers]
        assert sorted(ends) == list(range(LAYERS))
    with stepping(machine, replace(STEP, between=0)) as found:
        assert "weights" not in {program.name for program in found.programs}


@pytest.mark.parametrize("every", [0, 2, 3])
def test_layers_are_walked_in_the_order_of_the_model(every, machine):
    """In each group of layers the last one attends to all tokens. An order by kinds would be easier
    to cache.
    """
    point = replace(STEP, shape=replace(STEP.shape, full_every=every))
    with stepping(machine, point) as found:
        windows = [layers.point.shape.window for layers, _ in found.order]
        assert windows == [
            0 if every and (layer + 1) % every == 0 else 16 for layer in range(LAYERS)
        ]
        at = {}
        for layers, place in found.order:
            assert place == at.get(layers, 0)
            at[layers] = place + 1
        tasks = [task for task, _ in found.tasks()]
        for place, (layers, number) in enumerate(found.order):
            own = layers.appends[number], layers.decodes[number]
            assert tuple(tasks[3 * place : 3 * place + 2]) == own
        assert [kind for _, kind in found.tasks()] == [0, 1, 2] * LAYERS


@pytest.fixture
def record(machine):
    """A step long enough to tell its passes apart."""
    point = replace(STEP, between=20 * WEIGHTS)
    plan, needs = Plan((point,), 1, 3, 0.002, 1), needs_here([point], machine)
    asked = replace(job(plan), machine=machine, needs={point.name: needs[point]})
    _, found = launch(default_library(), asked)
    assert isinstance(found, Record) and not found.error
    return found


def test_a_record_has_shares_tails_and_what_a_step_walks(record):
    for sample in record.samples:
        assert len(sample.shares) == (3 if sample.program not in ("fma",) else 0), sample.program
        assert not sample.pass_seconds
        if sample.program == "point":
            assert min(sample.shares) > 0 and math.isclose(sum(sample.shares), 1.0)
    tail, passes = record.tails["point"], [s.passes for s in record.samples if s.program == "point"]
    assert tail.passes == sum(passes) and tail.p50 > 0
    assert record.slices == LAYERS and record.level == "unknown"
    assert record.footprint == record.traffic["point"].bytes_line - 20 * LAYERS * WEIGHTS
    assert record.slice_bytes == needs_here([STEP], describe())[STEP].slice_bytes
    assert record.memory["resident_bytes"] > 0 and record.ran


def test_steps_are_timed_side_by_side_on_memory_of_their_own(machine):
    """Each of them has rings in its own room, too."""
    points = STEP, replace(STEP, dtype="i8"), replace(STEP, dtype="q4_0")
    contrast = Contrast("dtype", points)
    needs = needs_here([contrast], machine)
    asked = job(Plan((contrast,), 1, 3, 0.0005, 1))
    own = {each.name: needs[each] for each in members(contrast)}
    _, found = launch(default_library(), replace(asked, machine=machine, needs=own))
    assert not found.error and {"f16", "i8", "q4_0"} == {s.program for s in found.samples}


def test_rooms_side_by_side_share_no_byte(machine):
    with Ground(default_library(), machine) as ground:
        needed = needs_here([STEP], machine)[STEP]
        with StepRoom(STEP, needed, ground) as one, StepRoom(STEP, needed, ground, place=1) as two:
            rows = [room.rows for step in (one, two) for room in step.rooms]
            assert len(rows) == 4
            pairs = [(a, b) for a in rows for b in rows if a is not b]
            assert not any(np.may_share_memory(*pair) for pair in pairs)
            # no layer of any is another one's: hypervisors keep equal pages once
            assert len({row.tobytes() for each in rows for row in each}) == 2 * LAYERS


def test_answers_are_computed_anew_whatever_the_signs_of_the_first_layer(machine):
    """The first layer of the ring part has signs of its own."""
    with stepping(machine) as found:
        found.verify()
        found.team.run(*found.own.tasks)
        for layers in found.parts:
            layers.queries.answer()
        assert (found.parts[1].room.signs[0] < 0).any() and found.verify_left(1) < 1e-5


def test_an_older_library_has_no_steps(monkeypatch):
    library = default_library()
    assert "step" in {kernel.op for kernel in kernels_of(library)}
    monkeypatch.setattr(Library, "takes_series", False)
    assert "step" not in {kernel.op for kernel in kernels_of(library)}
    with pytest.raises(Unsupported, match="too old for whole steps"):
        Series(library, (), (), 1)


# ---- faults --------------------------------------------------------------------------------------


def ring(found):
    return found.parts[1]


def append_after_decode(found, patch):
    right = Stepping.tasks

    def swapped(bench):
        tasks = right(bench)
        for at in range(0, len(tasks), 3):
            tasks[at], tasks[at + 1] = tasks[at + 1], tasks[at]
        return tasks

    patch.setattr(Stepping, "tasks", swapped)


def freed_too_early(found, patch):
    """A block of the longest sequence is given to another sequence, for its newest token."""
    for cache in found.parts[0].room.caches:
        cache.table[0, 2] = cache.table[1, 4]


def freed_too_early_in_one_layer(found, patch):
    cache = found.parts[0].room.caches[1]
    cache.table[0, 2] = cache.table[1, 9]


def wrong_ring_slot(found, patch):
    """The token goes to the slot after its own; the count of tokens is right."""
    patch.setattr(Layers, "_refuse_misplaced", lambda layers: None)
    ring(found).before[1].lengths += 1


def ring_that_starts_anew(found, patch):
    patch.setattr(Layers, "_refuse_misplaced", lambda layers: None)
    ring(found).before[2].lengths %= 16
    ring(found).before[2].lengths += 3


def wrong_length_of_a_store(found, patch):
    found.parts[0].before[1].lengths[1] -= 1


def wrong_length_of_a_decode(found, patch):
    found.parts[0].room.caches[1].lengths[1] -= 1


def wrong_length_that_nobody_counts(found, patch):
    patch.setattr(Layers, "_refuse_misplaced", lambda layers: None)
    found.parts[0].room.caches[1].lengths[1] -= 1


def token_of_another_layer(found, patch):
    sources = found.parts[0].sources
    sources[0], sources[1] = sources[1].copy(), sources[0].copy()


def layer_without_its_store(found, patch):
    right = Stepping.tasks
    patch.setattr(Stepping, "tasks", lambda bench: right(bench)[1:])


def layer_without_its_decode(found, patch):
    right = Stepping.tasks
    patch.setattr(Stepping, "tasks", lambda bench: right(bench)[:-2])


FAULTS = (
    append_after_decode,
    freed_too_early,
    freed_too_early_in_one_layer,
    wrong_ring_slot,
    ring_that_starts_anew,
    wrong_length_of_a_store,
    wrong_length_of_a_decode,
    wrong_length_that_nobody_counts,
    token_of_another_layer,
    layer_without_its_store,
    layer_without_its_decode,
)


@pytest.mark.parametrize("dtype", ["f16", "i8", "q4_0", "e4m3"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_noticed(fault, dtype, machine, monkeypatch):
    point = replace(STEP, dtype=dtype)
    with stepping(machine, point) as found:
        assert found.verify() < 1e-5
    with stepping(machine, point) as found:
        for layers in found.parts:
            layers.queries.right()
        fault(found, monkeypatch)
        with pytest.raises(WrongAnswer):
            found.verify()


def test_weights_over_a_cache_are_noticed(machine, monkeypatch):
    far = Ground.far
    needed = needs_here([STEP], machine)[STEP]
    with Ground(default_library(), machine) as ground, StepRoom(STEP, needed, ground) as room:
        for own in room.rooms:
            monkeypatch.setattr(Ground, "far", lambda *args, own=own: own.arena)
            with pytest.raises(WrongAnswer, match="in the memory of weights"):
                Stepping(STEP, replace(needed, far=needed.cache_bytes // 2), room, Answers())
        monkeypatch.setattr(Ground, "far", far)
        Stepping(STEP, needed, room, Answers()).close()


def test_a_store_that_stops_is_noticed(machine, monkeypatch):
    """Even if earlier steps stored the same token in the same places."""
    with stepping(machine) as found:
        run, alone = found.team.run, {each.name: each.tasks for each in found.witnesses}
        assert found.verify() < 1e-5

        def decoding(*tasks, **how):
            return run(*(alone["decodes"] if tasks == found.own.tasks else tasks), **how)

        monkeypatch.setattr(found.team, "run", decoding)
        with pytest.raises(WrongAnswer):
            found.verify()


@pytest.mark.parametrize("what", ["stored", "answered"])
def test_wrong_answers_left_by_samples_are_noticed(what, machine, monkeypatch):
    """Even if all was right before them."""
    with stepping(machine) as found:
        run, last = found.team.run, found.parts[1]

        def spoiling(*tasks, **how):
            times = run(*tasks, **how)
            if how.get("passes") == 7:
                if what == "stored":
                    last.room.rows[2, last._newest] ^= 1
                else:
                    last.queries.out[2, 1, 3, 31] += 1.0
            return times

        monkeypatch.setattr(found.team, "run", spoiling)
        with pytest.raises(WrongAnswer, match="off by"):
            found.measured([found.own, found.pace], 1, 1e-5, passes={"point": 7, "fma": 1})


def test_an_answer_that_was_kept_is_noticed(machine, monkeypatch):
    with stepping(machine) as found:
        run = found.team.run
        assert found.verify() < 1e-5 and found.verify_changed() < 1e-5
        run(*found.own.tasks)
        kept = [layers.queries.out.copy() for layers in found.parts]

        def remembering(*tasks, **how):
            times = run(*tasks, **how)
            for layers, out in zip(found.parts, kept, strict=True):
                layers.queries.out[:] = out
            return times

        monkeypatch.setattr(found.team, "run", remembering)
        assert found.verify() < 1e-5
        with pytest.raises(WrongAnswer, match="off by"):
            found.verify_changed()


def test_answers_of_steps_are_not_answers_of_decodes(machine, tmp_path):
    """Their caches hold another token; and one answer serves all layouts."""
    (full, _), answers = parts(STEP), Answers(str(tmp_path))
    point = replace(STEP, shape=replace(STEP.shape, window=0))
    needed = needs_here([point], machine)[point]
    with (
        Ground(default_library(), machine) as ground,
        StepRoom(point, needed, ground) as room,
    ):
        cache = room.rooms[0].caches[0]
        q = np.ones((3, 4, 32), np.float32)
        plain = answers.of(full.point, cache, q)
        with Stepping(point, needed, room, answers) as found:
            found.verify()
            own = found._answers.holding("step").of(full.point, cache, q)
    assert not np.array_equal(plain.out, own.out)
