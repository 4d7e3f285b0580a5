"""What a score says, and what invalidates it. Each fault is planted in a run that is valid without
it.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from kvbench.report.words import paragraphs, said
from kvbench.score import VERSION, digest
from kvbench.submission import SEAL, scored, seal
from tests.made_run import failed, machine
from tests.score import made

FIRST = made.points()[0]
RESULTS = Path(__file__).resolve().parents[2] / "results" / "scores.md"


def test_the_version_stands_for_this_workload_and_these_rules():
    """A change of what is measured, counted or required needs a new version, so that figures of
    this version keep their meaning.
    """
    assert (VERSION, digest()) == ("1.0", "df247ae3")
    assert f"{VERSION} #{digest()}" in RESULTS.read_text()


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    return made.run(tmp_path_factory.mktemp("scores") / "valid", loaded=True)


def test_figures(valid):
    found = scored(valid)
    assert found.state == "valid" and not found.breaches
    assert [each.bits for each in found.figures] == [16, 8, 4]
    first = found.figures[0]
    # a token reads 32 slices
    assert first.tuned.tokens == pytest.approx(20e9 / (32 * 16809984), rel=0.01)
    assert first.tuned.low <= first.tuned.tokens <= first.tuned.high
    assert first.base.tokens == pytest.approx(0.9 * first.tuned.tokens, rel=1e-6)
    assert first.share == pytest.approx(20 / 21, rel=0.01) and first.schedule == "stream"
    assert found.longer[0].batch == 8 and found.longer[0].rate.tokens == pytest.approx(
        first.tuned.tokens, rel=0.02
    )


def test_seven_lines_tell_a_stranger(valid):
    lines = paragraphs("score", "lines", scored(valid))
    assert len(lines) == 7 and all(len(line) <= 120 for line in lines)
    text = "\n".join(lines)
    for words in (
        f"score {VERSION} #{digest()} VALID",
        "virtual machine (KVM)",
        "8 bits",
        "untuned",
        "error",
        "compare",
    ):
        assert words in text


def test_latency_beside_the_kernel_of_16_bits_is_no_part_of_it(valid, tmp_path):
    found, without = scored(valid), scored(made.run(tmp_path / "run"))
    said = paragraphs("score", "lines", found)[5]
    assert said == (
        "latency of memory: 100 ns idle (100 to 100), 145 beside decode f16 at 15.4 GB/s, 1.45x;"
        " beside one core, not saturated"
    )
    assert replace(found, idle=(), loaded=()) == without and not without.idle
    alone = replace(without, threads=1)
    assert "no core is left for the chase" in paragraphs("score", "lines", alone)[5]


def planted(fault):
    """Points and visits with a fault."""
    own = made.points()
    if fault == "shortened context":
        own = made.points(replace(made.SHAPE, context=2048, capacity=2048))
    if fault == "fits L3":
        own = made.points(replace(made.SHAPE, layers=1))
    if fault == "one thread":
        own = made.points(cpus=(0,))
    found = list(made.records(own, launches=9 if fault == "few launches" else 10))
    if fault == "wrong kernel":
        found = [
            (
                failed(r.launch, FIRST, "decode.flash.head.f16.scalar is off by 0.3")
                if r.point == FIRST
                else r
            )
            for r in found
        ]
    if fault == "bytes left out":
        found = [made.lighter(r) if r.point == FIRST else r for r in found]
    if fault == "memory hog":
        found = [made.twice(made.twice(r), "twin") if r.launch == 3 else r for r in found]
    if fault == "other work":
        found = [
            (
                replace(r, samples=tuple(replace(s, switches=50) for s in r.samples))
                if r.launch == 3
                else r
            )
            for r in found
        ]
    if fault == "above all reads":
        found = [made.twice(r, by=2) if r.point == FIRST else r for r in found]
    if fault == "two kernels":
        own += [replace(each, layout="position") for each in own[:2]]
        found += made.records(own[-2:])
        found = list({(r.launch, r.point.name): r for r in found}.values())
    if fault == "slow reads":
        found = [made.twice(r, "twin", 0.3) for r in found]
    return own, found


FAULTS = {
    "wrong kernel": (
        "answers",
        "an answer is wrong or missing: decode.flash.head.f16.scalar is off by 0.3",
    ),
    "shortened context": ("workload", "context is 2048, and must be 4096"),
    "fits L3": ("caches", "16.03 MiB in rotation, but 128 MiB are needed"),
    "one thread": ("cores", "1 of 2 cores"),
    "few launches": ("launches", "9 launches, and 10 are needed"),
    "bytes left out": ("bytes", "a pass reads 8,404,992 bytes, and 16,809,984 count"),
    "memory hog": (
        "contaminated",
        "launch 3 is contaminated: memory gave 51% of what it gave in the others",
    ),
    "other work": ("contaminated", "launch 3 is contaminated: other work disturbed"),
    "above all reads": ("above", "faster than can be explained"),
    "two kernels": ("kernels", "16 bits: 2 kernels in one run"),
    "slow reads": ("witnesses", "reads beside it reached 30% of the best reads of memory"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault, tmp_path):
    own, visits = planted(fault)
    found = scored(made.run(tmp_path / "run", own, visits, longer=False))
    rule, text = FAULTS[fault]
    assert found.state == "invalid" and rule in [each.rule for each in found.breaches]
    assert any(text in said("score", "breach", each) for each in found.breaches)
    assert (
        "INVALID" in paragraphs("score", "lines", found)[0]
        and "do not compare it" in paragraphs("score", "lines", found)[-1]
    )


def test_an_unknown_last_level_is_not_taken_for_none(tmp_path):
    bare = replace(made.MACHINE, caches=machine(2, l3=0, l2=0, l1=0).caches)
    found = scored(made.run(tmp_path / "run", machine=bare, longer=False))
    assert found.state == "invalid" and "no last-level cache is known" in said(
        "score", "why", found, 9
    )


def test_a_wide_interval_is_noisy_and_own_kernels_are_open(tmp_path):
    wide = list(made.records(made.points(), wobble=0.15))
    found = scored(made.run(tmp_path / "noisy", visits=wide, longer=False))
    assert found.state == "noisy" and {each.rule for each in found.breaches} == {"width"}
    found = scored(made.run(tmp_path / "open", longer=False, options={"plugin": "/x/mine.so"}))
    assert found.state == "open" and said("score", "why", found) == "own kernels or an own build"


# ---- files that were changed ---------------------------------------------------------------------


def test_an_unfinished_run_is_not_a_score(tmp_path):
    found = scored(made.run(tmp_path / "run", sealed=False, longer=False))
    assert found.state == "invalid" and "--resume" in said("score", "why", found)


@pytest.mark.parametrize("name", ["journal.jsonl", "machine.json", "longer/journal.jsonl"])
def test_an_edited_file_is_named(name, tmp_path):
    path = made.run(tmp_path / "run")
    text = (path / name).read_text()
    (path / name).write_text(
        text.replace("0", "1", 1) if name == "machine.json" else text.rsplit("\n", 2)[0] + "\n"
    )
    found = scored(path)
    assert found.state == "invalid" and f"{name} was changed since the score was made" in said(
        "score", "why", found
    )


@pytest.mark.parametrize("edit", [("1.0", "0.9"), ("df247ae3", "00000000")])
def test_another_version_is_never_compared(edit, tmp_path):
    path = made.run(tmp_path / "run", longer=False)
    (path / SEAL).write_text((path / SEAL).read_text().replace(*map('"{}"'.format, edit)))
    found = scored(path)
    assert found.state == "invalid" and f"and this kvbench makes 1.0 #{digest()}" in said(
        "score", "why", found
    )
    assert seal(path).state == "valid"
