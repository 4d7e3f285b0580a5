"""A page says what its answers hold: each planted answer stands there once."""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Answer, Basis, Reason, State
from kvbench.analysis.answers.between import Course
from kvbench.analysis.differs.questions import Open
from kvbench.analysis.means.findings import findings
from kvbench.model import Check
from kvbench.report import tables
from kvbench.report.words.findings import sentences
from kvbench.report.words.first import badge, subtitle, tiles, workload
from tests.made_run import MACHINE, RUN
from tests.report.answered import ANSWERS, FAMILY
from tests.report.texts import unnamed
from tests.store.made import manifest

CHECKS = [Check("load", "warn", "1.5", ""), Check("swap", "ok", "none", "")]
CLOSED = Answer.untested("L3", Reason.CLOSED, threads=8, largest_threads=3)
OPEN = tuple(
    Open(question, "decode", "DRAM", "a", "b", "head f16", 1.25, 0.9, 1.5, 14, 20, ())
    for question in ("layout", "residency")
)
UNTESTED = Answer.untested("x", Reason.NO_L3)


def told(answers=ANSWERS, **facts):
    found = findings(RUN, [], MACHINE, CHECKS)
    return replace(found, answers=answers, **facts)


def tile(title, answers=ANSWERS):
    (found,) = [each for each in tiles(answers) if each.title == title]
    return f"{found.value} | {found.detail}"


def with_(name, **changes):
    return replace(ANSWERS, **{name: replace(getattr(ANSWERS, name), **changes)})


BETWEEN = with_("l3", families=(FAMILY,))
FASTEST, HELPS = ANSWERS.decodes.fastest, ANSWERS.l3.helps
TILES = [
    ("Format of K, V", ANSWERS, "i8 | no format with an error of 1% of the output or less is"),
    ("Format of K, V", ANSWERS, "with heavy keys none; up to 10% of it q8_0+q4_0 dot"),
    ("Fastest decode", ANSWERS, "90.2 tokens/s | i8 (dot, head): a clear lead over all others"),
    ("Fastest decode", ANSWERS, "1.26x (1.12 to 1.41) as fast as q4_0 (dot, head)"),
    (
        "Fastest decode",
        with_("decodes", fastest=replace(FASTEST, subject=("i8 point", "f16 point"),
                                         state=State.LEVEL), next=None),
        "i8 (dot, head) and f16 (flash, head) are level, side by side",
    ),
    (
        "Fastest decode",
        with_("decodes", fastest=replace(FASTEST, basis=Basis.APART), next=None),
        "i8 (dot, head), timed in visits of its own, so without a ratio",
    ),
    ("Fastest decode", with_("decodes", fastest=UNTESTED), "not measured | no decode of this run"),
    ("Memory", ANSWERS,
     "31.4 GB/s | plain reads by 2 threads, 45 of 47 visits (nine of ten: 27.1 to 34.2)"),
    ("Memory", ANSWERS, "47.1 to 53.2 in the other 2 visits: another state of the host"),
    ("Memory", with_("reads", states=ANSWERS.reads.states[:1]),
     "45 visits (nine of ten: 27.1 to 34.2)"),
    ("Memory", with_("reads", memory=UNTESTED), "not measured | no plain read of memory"),
    ("L3", ANSWERS, "148 GB/s | plain reads of a layer by 2 threads: 4.70x (4.50 to 5.50)"),
    ("L3", with_("reads", l3_rate=UNTESTED), "not measured | no decode of this run lies in L3"),
    ("Does L3 help?", ANSWERS,
     "1.31x as fast | f16, 4 query heads a KV head (llama-3-8b, 2,048 tokens, layout head): a layer"
     " that stays in L3 decodes 1.31x (1.26 to 1.43) as fast as from memory, same rounds"),
    ("Does L3 help?", with_("l3", gains=(replace(ANSWERS.l3.gains[0], layouts=3, middle=True),)),
     "2,048 tokens, layout head, the middle of 3): a layer"),
    ("Does L3 help?", BETWEEN, "not after other reads | f16, 4 query"),
    ("Does L3 help?", BETWEEN, "same rounds; after a layer's q4_0 weights (117 MiB) were read in"
     " between, 1.01x (0.98 to 1.04)"),
    ("Does L3 help?", with_("l3", families=(replace(FAMILY, left=FAMILY.left[:2]),)),
     "1.14x as fast after other reads | "),
    ("Does L3 help?", with_("l3", helps=replace(HELPS, state=State.LEVEL)), "no clear gain | "),
    ("Does L3 help?", with_("l3", helps=replace(HELPS, state=State.OPEN)), "not decided | "),
    ("Does L3 help?", with_("l3", helps=UNTESTED), "not tested | no decode of this run lies in L3"),
    ("What limits", ANSWERS, "memory, for 1 of 3 dtypes | memory: f16; reads: i8; core: q4_0"),
    ("What limits", with_("decodes", rows=ANSWERS.decodes.rows[:1]), "reads | all dtypes"),
    ("What limits", with_("decodes", rows=()), "not measured | "),
    ("L3", with_("reads", l3_rate=CLOSED), "8 threads have more private cache than L3"),
    ("Does L3 help?", with_("l3", helps=Answer.untested("L3", Reason.NOT_FASTER, times=1.02)),
     "run at 1.02x those of memory"),
    ("Layout", ANSWERS, "blockt and head | f16, 4,096 tokens, from memory, side by side"),
    ("Layout", ANSWERS, "position takes 1.21x (1.12 to 1.33) of the time of blockt"),
    ("Layout", with_("factors", choices=()), "not measured | "),
]  # fmt: skip


@pytest.mark.parametrize(("title", "answers", "words"), TILES, ids=range(len(TILES)))
def test_a_tile_shows_its_answer(title, answers, words):
    assert words in tile(title, answers)


SENTENCES = {
    "mixed": [
        "The fastest formats of K and V by the error of the output: up to 1% of the output i8 (as"
        " fast: i8 by channel), with heavy keys none; up to 10% of it q8_0+q4_0 dot.",
        "q8_0+q4_0 dot is 1.22x (1.19 to 1.25) as fast as q8_0.",
        "i8 by channel is 1.01x (0.99 to 1.02) as fast as i8 by token: level.",
    ],
    "scores": [
        "Attention takes this many times as long as without it: f16 flash, gemma-2-9b, 2 query"
        " heads a KV head, 256 wide, 8,192 tokens, window 4096: cap 50 1.31 (1.30 to 1.32); sinks"
        " 1.02 (1.01 to 1.03).",
    ],
    "speculate": [
        "A step with 4 queries (the newest token and 3 drafts) takes 1.31 (1.22 to 1.40) times as"
        " long as with 1 (f16, llama-3-8b, 4 query heads a KV head, 16,384 tokens, 2 threads,"
        " attention alone): worth it if more than 0.31 of the drafts are accepted.",
        "A step gives its accepted drafts and one more token.",
    ],
    "latency": [
        "Latency of memory is 2.07x (2.05 to 2.09) the idle 108 ns at 90% of its read bandwidth (15"
        " threads, llama-3-8b, 4,096 tokens).",
        "A decode of f16 slows its neighbours as much as plain reads of the same rate: latency is"
        " 1.00x (0.99 to 1.01) as long; decode i8: not clear, 1.02x (1.01 to 1.04); append f16:"
        " more, 1.20x (1.19 to 1.21).",
        "Beside the chase a decode of f16 has 99% of its rate (98 to 100% of it): no slowdown",
        "Idle latency is 3.1 ns from L2, 14.2 ns from L3 and 108 ns from memory.",
        "On a virtual machine these figures include steal and the traffic of other guests.",
    ],
    "serve": [
        "Padding 16 requests to the longest makes a step 1.37x (1.31 to 1.42) as long (f16, head).",
        "Without padding (263 to 2,404 tokens), all 16 requests together get 64 tokens/s, each 4"
        " tokens/s.",
        "as many tokens, but all requests equally long, a step is 1.01x (0.99 to 1.02) as fast:"
        " level.",
    ],
    "variant": ["i8, 4,096 tokens, from memory, side by side: no clear lead among dot and flash."],
    "threads": ["2 threads are 1.71x (1.60 to 1.80) as fast as 1 from memory, side by side (a)."],
    "prefetch": [
        "From memory, schedule weave is 1.40x (1.30 to 1.50) as fast as no prefetching (f16",
        "From L3, no schedule is clearly faster than none",
    ],
    "stores": [
        "takes 30 µs in all layers (append f16). That is 0.3% of a decode step (0.2 to 0.4% of it)",
        "head is fastest; paged takes 1.69x (1.52 to 1.88) of its time.",
    ],
    "step": [
        "A step takes as long as its parts: 1.00 (0.98 to 1.03) (llama-3-8b, i8 head, 4,096",
        "4 GiB of weights: 100 ms, 10 tokens/s a sequence). Of 2 other steps none take as long as"
        " their parts;",
        "f16 head, 512 tokens, no weights: 1.06 (1.04 to 1.08), its decodes take 1.06 times as long"
        " within it as alone, which adds 5% of the time of all parts: alone their bytes stay in",
    ],
    "fits": ["in one layer (in all 32 layers): i8 7,912 (241); f32 2,011 (none)."],
    "servers": ["q4_0 is fastest from 1 to 9.1 GB/s a core", "This machine has 15.4 GB/s a core."],
    "suspect": ["2 of 58 points", "head i8 dot is faster than core speed, noise (suspect);"],
    "open": [
        "Not decided in 14 launches, of the fastest over others: layout of decode from memory, a"
        " over b (head f16: 1.25x, 0.9"
        " to 1.5); decodes from L3 over the same decodes from memory (head f16: 1.25x,"
    ],
    "doubt": [
        "One point in ten scatters by 21% of its time",
        "The cores were slow in 4 visits; 3 of these are left out.",
        "Other work disturbed 1.2% of the samples.",
    ],
    "checks": ["What may have disturbed the run: load (1.5)."],
}


def test_sentences_show_answers_in_order():
    """In one line each, and every percentage says of what it is a share."""
    found = sentences(told(open=OPEN))
    assert [each.topic for each in found] == list(SENTENCES)
    for each in found:
        assert [words for words in SENTENCES[each.topic] if words not in each.text] == []
        assert each.text.endswith(".") and "\n" not in each.text and not unnamed(each.text)


LEFT = (
    "f16, 4 query heads a KV head (llama-3-8b, 2,048 tokens, layout head) 1.31x (1.26 to 1.43) as"
    " fast from L3 as from memory, with nothing read in between. After other reads some of the gain"
    " is left: 1.22x (1.15 to 1.30) after 8 MiB, 1.14x (1.09 to 1.20) after 16 MiB; nothing of the"
    " gain is left: 1.01x (0.98 to 1.04) after a layer's q4_0 weights (117 MiB)."
)
FALLS = " The more is read in between, the less is left; it surely rises nowhere."


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (FAMILY, LEFT + FALLS),
        (
            replace(FAMILY, left=FAMILY.left[2:]),
            "1.01x (0.98 to 1.04) after a layer's q4_0 weights (117 MiB).",
        ),
        (
            replace(FAMILY, course=Course.RISES, rises=(16 << 20,)),
            "The gain surely rises at 16 MiB.",
        ),
        (
            replace(FAMILY, course=Course.NOT_CLEAR),
            "It is not clear whether the gain falls with more reads in between.",
        ),
        (replace(FAMILY, course=Course.LEVEL), "The gain stays as large as without other reads."),
        (
            replace(FAMILY, gain=replace(FAMILY.gain, state=State.LEVEL)),
            "with nothing read in between: no clear gain, so nothing can be left.",
        ),
    ],
)
def test_what_is_left_of_a_gain(family, words):
    answers = replace(ANSWERS, l3=replace(ANSWERS.l3, families=(family,)))
    (found,) = (each.text for each in sentences(told(answers)) if each.topic == "between")
    assert found.endswith(words) or words in found and family.course is not Course.FALLS


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        (0, "; none of these are left out."),
        (1, "; 1 of these is left out."),
        (4, ", which are left out."),
    ],
)
def test_how_many_slow_visits_are_left_out(left_out, words):
    said = sentences(told(with_("trust", set_aside=left_out)))
    assert any(f"The cores were slow in 4 visits{words}" in each.text for each in said)


def test_what_was_not_asked_is_not_said():
    found = sentences(findings(RUN, [], MACHINE))
    assert [each.topic for each in found] == []


def test_the_first_screen_names_its_workload_and_what_shares_are_of():
    assert workload(ANSWERS).startswith("llama-3-8b, 4,096 tokens, 1 sequence, KV cache only")
    texts = [each.detail for each in tiles(ANSWERS)] + [badge(ANSWERS)[1]]
    assert [word for text in texts for word in unnamed(text)] == []
    assert "58 points, 14 launches (5 or more for each point)" in subtitle(told(), manifest([], 2))


def test_trust_says_first_that_memory_changed():
    grade, reason = badge(ANSWERS)
    assert grade == "FAIR RUN" and reason.startswith(
        "Memory had two states: 31.4 GB/s in 45 of 47 visits, 50 in 2."
    )
    assert 'below 13% of a time as noise unless they are marked "side by side"' in reason
    assert "1 of 58 points is faster than what should limit it: see Suspects." in reason
    assert "Noise is unknown" in badge(with_("trust", scatter=None))[1]


def test_the_table_of_dtypes_has_all_shares_as_they_are():
    found = tables.dtypes(ANSWERS)
    rows = [dict(zip(found.heads, (cell.text for cell in row), strict=True)) for row in found.rows]
    assert rows[1] == {
        "dtype": "q4_0",
        "kernel": "dot, head",
        "tokens/s": "71.6",
        "interval": "69.6 to 84.6",
        "GB/s": "10.9",
        "% of memory read": "36% (34-38)",
        "% of its rows' read": "45% (43-47)",
        "% of core speed": "104% (102-106)",
        "what limits": "core",
        "format error, normal keys": "1e-01",
        "format error, heavy-tailed keys": "2e-01",
        "kernel error": "2e-03",
    }
    assert "In brackets: 95% intervals" in found.about
    assert "whose whole interval lies at 90% or more" in found.about
