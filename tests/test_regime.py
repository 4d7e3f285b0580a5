"""Regimes of made-up machines. The numbers are computed by hand from data sheets, never by the
code.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import BadArgument
from kvbench.model import Cpu, DataCache, Fact, Machine
from kvbench.regime import (
    Lies,
    classify,
    corrected,
    dram_bytes,
    far_bytes,
    holds,
    levels,
    suggestion,
    windows,
)
from kvbench.report.words import said as worded
from tests.made_run import KIB, MIB, machine


def hybrid():
    """8 performance cores with 2 MiB each, 4 clusters of 4 efficient cores with 4 MiB each, and 36
    MiB shared by all.
    """
    cpus = tuple(
        Cpu(cpu, cpu, 0, 0, 0, "performance" if cpu < 8 else "efficient") for cpu in range(24)
    )
    l1 = tuple(DataCache(1, 48 * KIB if cpu < 8 else 32 * KIB, (cpu,)) for cpu in range(24))
    l2 = tuple(DataCache(2, 2 * MIB, (cpu,)) for cpu in range(8))
    l2 += tuple(DataCache(2, 4 * MIB, tuple(range(first, first + 4))) for first in range(8, 24, 4))
    caches = (*l1, *l2, DataCache(3, 36 * MIB, tuple(range(24))))
    return Machine(cpus, tuple(range(24)), caches, (), {}, (), "", "")


def first(part, threads):
    return part.allowed[:threads]


ZEN4 = machine(8, smt=2)
ZEN4_X3D = machine(8, l3=96 * MIB, smt=2)
ZEN4_DIES = machine(16, per_l3=8)
SKYLAKE = machine(20, l3=27.5 * MIB, smt=2)
SAPPHIRE = machine(60, l1=48 * KIB, l2=2 * MIB, l3=112.5 * MIB, smt=2)
SNC4 = machine(60, l1=48 * KIB, l2=2 * MIB, l3=28.125 * MIB, per_l3=15)
GRAVITON2 = machine(64, l1=64 * KIB)
GRAVITON4 = machine(64, l1=64 * KIB, l2=2 * MIB, l3=36 * MIB)
HYBRID = hybrid()
APPLE = machine(8, l1=128 * KIB, l2=16 * MIB, l3=None, per_l2=4)
MERGED = machine(16, l2=512 * KIB, l3=260 * MIB)
MERGED = replace(MERGED, facts={"l3": Fact(260 * MIB, "sysfs", "low", "spans two sockets")})
ONE = machine(1, l3=16 * MIB)
NOTHING = machine(4, l1=None, l2=None, l3=None)
PARTS = dict(
    zen4=ZEN4,
    x3d=ZEN4_X3D,
    dies=ZEN4_DIES,
    skylake=SKYLAKE,
    sapphire=SAPPHIRE,
    snc4=SNC4,
    merged=MERGED,
)
PARTS |= dict(graviton2=GRAVITON2, graviton4=GRAVITON4, hybrid=HYBRID, apple=APPLE, one=ONE)


@pytest.mark.parametrize(
    ("part", "threads", "low", "high", "largest"),
    [
        (ZEN4, 8, 12.0, 22.4, 16),  # with all cores open, second threads add no private cache
        (ZEN4_X3D, 8, 12.0, 67.2, 16),
        (SKYLAKE, 12, 18.0, 19.25, 12),
        (SKYLAKE, 20, 30.0, 19.25, 12),
        (SAPPHIRE, 60, 180.0, 78.75, 26),
        (SNC4, 15, 45.0, 19.6875, 6),
        (GRAVITON2, 64, 96.0, 22.4, 14),
        (GRAVITON4, 64, 192.0, 25.2, 8),
        (HYBRID, 24, 72.0, 25.2, 8),  # eight cores of 2 MiB: 24 MiB
        (MERGED, 16, 12.0, 182.0, 16),
        (ONE, 1, 1.5, 11.2, 1),
    ],
)
def test_windows(part, threads, low, high, largest):
    cpus = first(part, threads)
    (window,) = windows(part, cpus)
    assert window.threads == threads
    assert window.low == pytest.approx(low * MIB)
    assert window.high == pytest.approx(high * MIB)
    assert (window.open, window.largest_threads) == (low <= high, largest)
    closed = f"not testable at {threads} threads; try --axis threads={largest}"
    assert suggestion(part, cpus) == ("" if low <= high else closed)


def test_other_suggestions():
    assert suggestion(SNC4, first(SNC4, 60)) == "not testable at 60 threads; try --axis threads=6"
    for part in (APPLE, NOTHING):
        assert suggestion(part, first(part, 4)) == "not testable: no L3 is known for these CPUs"


def test_the_cpus_without_an_l3_are_named():
    part = replace(SKYLAKE, caches=(*SKYLAKE.caches[:-1], DataCache(3, 32 * MIB, tuple(range(18)))))
    assert suggestion(part, range(20)) == "not testable: no L3 is known for CPUs 18-19"
    assert suggestion(replace(part, caches=part.caches[-1:]), range(20)).endswith("for CPUs 18-19")
    assert suggestion(part, (18, 19)) == "not testable: no L3 is known for these CPUs"


def test_a_private_cache_as_large_as_l3_leaves_nothing_to_try():
    part = machine(2, l1=48 * KIB, l2=4 * MIB, l3=8 * MIB)
    assert windows(part, (0,))[0].largest_threads == 0
    assert suggestion(part, (0,)).startswith("not testable at 1 thread, nor at fewer")


@pytest.mark.parametrize(
    ("part", "threads", "each", "word"),
    [  # each: bytes per thread
        (ZEN4, 8, 16 * KIB, "L1"),
        (ZEN4, 8, 17 * KIB, "mixed"),  # L1 still serves most of it
        (ZEN4, 8, 47 * KIB, "mixed"),  # and until half as much again does not fit it, some
        (ZEN4, 8, 48 * KIB, "L2"),
        (ZEN4, 16, 9 * KIB, "mixed"),  # half an L1 for each thread
        (ZEN4, 8, 0.8 * MIB, "L2"),
        (ZEN4, 8, 0.81 * MIB, "mixed"),
        (ZEN4, 8, 1.49 * MIB, "mixed"),
        (ZEN4, 8, 1.5 * MIB, "L3"),
        (ZEN4, 8, 2.8 * MIB, "L3"),
        (ZEN4, 8, 2.9 * MIB, "mixed"),
        (ZEN4, 8, 15.9 * MIB, "mixed"),
        (ZEN4, 8, 16 * MIB, "DRAM"),
        (ZEN4, 16, 0.8 * MIB, "L3"),
        (ZEN4_DIES, 16, 2 * MIB, "L3"),
        (ZEN4_DIES, 16, 15 * MIB, "mixed"),
        (ZEN4_DIES, 16, 16 * MIB, "DRAM"),
        (ZEN4_DIES, 8, 16 * MIB, "DRAM"),  # the other die is idle and holds nothing
        (SKYLAKE, 20, 0.8 * MIB, "L2"),
        (SKYLAKE, 20, 1.6 * MIB, "mixed"),  # beyond L2, and already too much for L3
        (SKYLAKE, 20, 5.5 * MIB, "DRAM"),
        (SKYLAKE, 12, 1.6 * MIB, "L3"),
        (SAPPHIRE, 60, 3 * MIB, "mixed"),
        (SAPPHIRE, 60, 7.5 * MIB, "DRAM"),
        # 144 MiB, four times L3: but the shares have not left the L2s
        (GRAVITON4, 64, 2.25 * MIB, "mixed"),
        (GRAVITON4, 64, 3 * MIB, "DRAM"),
        (HYBRID, 8, 3 * MIB, "L3"),
        (HYBRID, 24, 0.79 * MIB, "L2"),
        (HYBRID, 24, 1.2 * MIB, "mixed"),
        (APPLE, 4, 64 * KIB, "L1"),
        (APPLE, 4, 191 * KIB, "mixed"),
        (APPLE, 4, 192 * KIB, "L2"),
        (APPLE, 4, 2.8 * MIB, "L2"),
        (APPLE, 4, 2.9 * MIB, "mixed"),
        (APPLE, 4, 16 * MIB, "DRAM"),
        (MERGED, 16, 4 * MIB, "L3"),
        (ONE, 1, 2 * MIB, "L3"),
        (NOTHING, 4, 16 * KIB, "unknown"),
        (NOTHING, 4, 1024 * MIB, "unknown"),
    ],
)
def test_words(part, threads, each, word):
    found = classify(part, first(part, threads), each * threads)
    assert found.word == word, found
    assert found.reason


@pytest.mark.parametrize(
    ("found", "reason", "held", "limit"),
    [
        # 60 MiB by 60 threads, of 2 MiB of L2 each
        (classify(SAPPHIRE, first(SAPPHIRE, 60), 60 * MIB), Lies.WITHIN, MIB, 0.8 * 2 * MIB),
        (classify(ZEN4, first(ZEN4, 8), 24 * MIB), Lies.TOO_LITTLE, 24 * MIB, 0.7 * 32 * MIB),
        (classify(ZEN4, first(ZEN4, 8), 20 * MIB), Lies.SHARED, 20 * MIB, 0.7 * 32 * MIB),
        (classify(ZEN4, first(ZEN4, 8), 512 * MIB), Lies.FAR, 512 * MIB, 4 * 32 * MIB),
        (classify(NOTHING, (0,), MIB), Lies.NO_CACHE, 0, 0),
        (classify(ZEN4, (0,), KIB, evicted=True), Lies.SWEPT, 0, 0),
    ],
)
def test_the_reason_names_the_numbers(found, reason, held, limit):
    assert (found.reason, found.bytes, found.limit) == (reason, held, pytest.approx(limit))


def test_every_reason_has_a_sentence():
    for reason in set(Lies) - {Lies.NOTHING}:
        said = worded("reasons", "level", "L2", reason, 3.0 * MIB, 5.0 * MIB)
        assert said and ("3 MiB" in said) == (found_by_size(reason)), reason


def found_by_size(reason):
    return reason not in (Lies.SWEPT, Lies.NO_CACHE, Lies.DIFFER, Lies.DISPLACED)


def test_evicted_is_dram_whatever_the_size():
    assert classify(ZEN4, (0,), KIB, evicted=True).word == "DRAM"
    assert classify(NOTHING, (0,), KIB, evicted=True).confidence == "low"


def test_domains_that_differ_are_mixed():
    """Seven threads on one die, one on the other: 20 MiB for each thread lie in L3 only for the
    single thread.
    """
    cpus = (0, 1, 2, 3, 4, 5, 6, 8)
    found = classify(ZEN4_DIES, cpus, 160 * MIB)
    assert found.word == "mixed" and found.reason == Lies.DIFFER
    # 32 MiB each: the one would still find some of it in L3
    alone = classify(ZEN4_DIES, cpus, 256 * MIB)
    assert (alone.word, alone.confidence) == ("DRAM", "low")
    assert classify(ZEN4_DIES, cpus, 1024 * MIB).confidence == "high"


def test_sizes_that_were_seen_replace_the_declared_ones():
    cpus = first(MERGED, 16)
    assert classify(MERGED, cpus, 64 * MIB).word == "L3"
    assert classify(MERGED, cpus, 64 * MIB).confidence == "low"
    seen = corrected(MERGED, {3: 16 * MIB})
    lower = classify(seen, cpus, 64 * MIB)
    assert (lower.word, lower.confidence) == ("DRAM", "high")
    assert windows(seen, cpus)[0].high == pytest.approx(11.2 * MIB)
    assert suggestion(seen, cpus) == "not testable at 16 threads; try --axis threads=14"


def test_confidence():
    assert classify(ZEN4, (0,), 4 * MIB).confidence == "high"
    assert classify(NOTHING, (0,), 4 * MIB).confidence == "none"
    assert classify(MERGED, (0,), 16 * KIB).confidence == "high"  # L3 is not involved
    # a private last level: virtual machines leave out the L3 behind it
    assert classify(machine(4, l3=None), (0, 1), 64 * MIB).confidence == "low"
    assert classify(APPLE, first(APPLE, 4), 64 * MIB).confidence == "high"
    sure = [classify(SAPPHIRE, first(SAPPHIRE, 60), total * MIB).confidence for total in (450, 480)]
    assert sure == ["low", "high"]  # 120 MiB of L2: more than a quarter of the first


def test_a_cache_behind_l3_is_no_level_but_a_doubt():
    part = replace(ONE, caches=(*ONE.caches, DataCache(4, 128 * MIB, (0,))))
    assert classify(part, (0,), 8 * MIB) == classify(ONE, (0,), 8 * MIB)
    assert classify(part, (0,), 64 * MIB) == replace(
        classify(ONE, (0,), 64 * MIB), confidence="low"
    )


def test_a_level_behind_l1_must_be_known():
    part = machine(2, l1=48 * KIB, l2=None, l3=None)
    assert classify(part, (0,), 24 * KIB).word == "L1"
    assert classify(part, (0,), 25 * KIB).word == "unknown"
    assert dram_bytes(part, (0,)) is None


def test_an_offline_cpu_zero_and_more_threads_than_cpus():
    part = replace(ZEN4, cpus=ZEN4.cpus[1:], allowed=(3, 5))
    assert classify(part, (3, 5), 4 * MIB).word == "L3"
    assert classify(part, (3, 5, 3), 0.8 * MIB * 3).word == "mixed"  # two threads on one L2
    with pytest.raises(BadArgument, match="cpus"):
        classify(part, (), MIB)


def test_caches_in_use_are_counted_once():
    assert {level: len(caches) for level, caches in levels(SAPPHIRE, (0, 1, 60)).items()} == {
        1: 2,
        2: 2,
        3: 1,
    }
    assert levels(NOTHING, (0,)) == {}


ORDER = ("L1", "L2", "L3", "DRAM")
WALKS = st.tuples(
    st.sampled_from(sorted(PARTS)),
    st.integers(1, 64),
    st.integers(1 * KIB, 2048 * MIB),
    st.integers(1, 100),
)


@given(WALKS)
def test_never_l3_while_the_share_fits_the_private_cache(walk):
    name, threads, footprint, _ = walk
    cpus = first(PARTS[name], threads)
    users = {
        cpu: sum(
            cpu in c.cpus and other in c.cpus
            for c in PARTS[name].caches
            if c.level == 2
            for other in cpus
        )
        for cpu in cpus
    }
    sizes = {
        cpu: next(c.size for c in PARTS[name].caches if c.level == 2 and cpu in c.cpus)
        for cpu in cpus
    }
    share = footprint / len(cpus)
    if any(share <= 0.8 * sizes[cpu] / users[cpu] for cpu in cpus):
        assert classify(PARTS[name], cpus, footprint).word != "L3"


@given(WALKS)
def test_more_bytes_never_move_to_a_nearer_level(walk):
    name, threads, footprint, percent = walk
    cpus = first(PARTS[name], threads)
    pair = [
        classify(PARTS[name], cpus, size).word
        for size in (footprint, footprint * (1 + percent / 10))
    ]
    ranks = [ORDER.index(word) for word in pair if word in ORDER]
    assert ranks == sorted(ranks)
    assert pair[0] != "DRAM" or pair[1] == "DRAM"


@given(WALKS)
def test_dram_begins_where_it_says(walk):
    name, threads, _, _ = walk
    cpus = first(PARTS[name], threads)
    least = dram_bytes(PARTS[name], cpus)
    assert classify(PARTS[name], cpus, least * 1.001).word == "DRAM"
    assert classify(PARTS[name], cpus, least * 0.999).word != "DRAM"


def test_far_bytes_leave_the_caches_of_every_domain_in_use():
    """Zen 4: 4 x 32 MiB, but at least 256 MiB. With 96 MiB of L3: 384 MiB on one die. Nothing
    known: the minimum.
    """
    assert far_bytes(ZEN4, first(ZEN4, 8)) == 256 * MIB
    assert far_bytes(ZEN4_X3D, first(ZEN4_X3D, 8)) == 384 * MIB
    assert far_bytes(NOTHING, first(NOTHING, 4)) == 256 * MIB


@pytest.mark.parametrize("part", PARTS)
def test_what_a_level_holds_is_what_its_word_means(part):
    """Up to that size the word is this level, a nearer level, or mixed; above it never this level
    again.
    """
    for threads in (1, 2, len(PARTS[part].allowed)):
        cpus = first(PARTS[part], threads)
        for level, most in holds(PARTS[part], cpus).items():
            word = classify(PARTS[part], cpus, most * (1 - 1e-9)).word
            assert word == "mixed" or int(word[1:]) <= level, (part, threads, level)
            assert classify(PARTS[part], cpus, most * (1 + 1e-6)).word != f"L{level}"


def test_second_threads_are_not_what_to_try():
    """Ten cores with 1 MiB each and four with 2 MiB: using both threads of the four would open the
    window again.
    """
    cpus = tuple(Cpu(cpu, cpu if cpu < 14 else cpu - 14, 0, 0, cpu // 14) for cpu in range(18))
    l2 = tuple(DataCache(2, 2 * MIB, (cpu, cpu + 14)) for cpu in range(4))
    l2 += tuple(DataCache(2, MIB, (cpu,)) for cpu in range(4, 14))
    part = Machine(
        cpus, tuple(range(18)), (*l2, DataCache(3, 40 * MIB, tuple(range(18)))), (), {}, (), "", ""
    )
    assert windows(part, range(14))[0].largest_threads == 18
    assert suggestion(part, range(14)) == "not testable at 14 threads; try --axis threads=9"
