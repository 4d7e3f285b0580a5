"""kvbench explain --draft: whether drafting pays on made-up machines, by hand; what is refused."""

import json
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from kvbench.analysis.measured.machines import profile
from kvbench.model.weights import Weights
from kvbench.report.explain import drafted_lines
from kvbench.sizing.draft import asked
from kvbench.sizing.drafting import drafted
from kvbench.sizing.known import known
from kvbench.store import plain
from tests.cli.test_cli import output_of, refused
from tests.made_run import MACHINE, READ, probe
from tests.report.made import directory
from tests.report.speculating import HEADS, LAUNCHES, family
from tests.sizing.made import GIB
from tests.sizing.test_explain import LATENT, LLAMA_8B, RUN, explained, machine

ACCEPT = ".7,.45,.33,.21"
WEIGHTS = 15 * GIB / 20e9  # seconds: those of a step at 20 GB/s
TIMES = {2: (1.05, 1.0, 1.1), 5: (1.3, 1.2, 1.4), 8: (1.6, 1.5, 1.7)}  # of one, by queries


def timed(times=TIMES, dtype="f16", first="a", group=4, rate=20.0):
    """Points with several queries, and the rate of the same with one."""
    names = ("q_len", "times", "times_low", "times_high")
    rows = [dict(zip(names, (n, *own), strict=True)) for n, own in times.items()]
    shape = {"dtype": dtype, "group": group, "head_dim": 128, "context": 4096, "regime": "DRAM"}
    return pd.DataFrame(rows).assign(
        **shape, name=first, variant=first, layout="head", kv_gbps=rate
    )


@cache
def of_model(shape, **facts):
    return explained(shape, **facts)


def drafting(
    *points, shape=LLAMA_8B, gflops=400.0, dtypes=(), draft=(4, ACCEPT, None), narrow=None, **facts
):
    queries = pd.concat(points) if points else None
    known = replace(machine(), queries=queries, gflops=gflops, narrow=narrow)
    return drafted(of_model(shape, **facts), known, asked(*draft), dtypes)


def at(found, context=8192):
    (own,) = found.formats
    return next(row for row in own.rows if row.context == context)


def ends(own):
    return own.value, own.low, own.high


def test_a_step_reads_the_weights_once_and_takes_the_attention_that_was_timed():
    """At 8,192 tokens the cache is 1 GiB: a plain step reads 16 GiB at 20 GB/s."""
    found = drafting(timed())
    row, cache = at(found), GIB / 20e9
    assert (found.queries, found.yields, found.limit) == (5, pytest.approx(2.69), "reads")
    steps = [WEIGHTS + times * cache for times in TIMES[5]]
    assert ends(row.plain) == pytest.approx([16 * cache] * 3)
    assert ends(row.before) == pytest.approx([1 / (16 * cache)] * 3)
    assert ends(row.step) == pytest.approx(steps)
    middle, fast, slow = steps
    assert ends(row.tokens) == pytest.approx((2.69 / middle, 2.69 / slow, 2.69 / fast))
    assert ends(row.times) == pytest.approx(
        tuple(16 * cache * 2.69 / s for s in (middle, slow, fast))
    )
    spare = 2.69 * 16 * cache - slow
    assert row.spare.low == pytest.approx(spare) and row.share == pytest.approx(
        spare / (16 * cache)
    )
    assert (row.pays, row.cost, row.attention.queries, row.attention.kernel) == (
        "if",
        None,
        5,
        "a, head",
    )


@pytest.mark.parametrize(
    ("drafts", "queries", "times"),
    [
        (1, 2, TIMES[2]),
        (3, 5, (1.3, 1.0, 1.4)),
        (8, None, (None, 1.5, 9.0)),
        (10, 16, (11.0, 1.5, 11.0)),
    ],
)
def test_other_numbers_of_queries_are_bounds(drafts, queries, times):
    """4 lie between 2 and 5; 9 are more than were timed; 11 take no longer than 11 steps of one."""
    more = {16: (12.0, 11.0, 13.0)} if drafts == 10 else {}
    own = at(drafting(timed(TIMES | more), draft=(drafts, ".5", None))).attention
    assert (own.queries, *ends(own.times)) == (queries, *times)


@pytest.mark.parametrize("facts", [{}, {"shape": LATENT}, {"dtypes": ("q4_0",)}])
def test_without_a_measurement_it_takes_one_to_as_many_times_as_long(facts):
    points = (timed(),) if facts else ()
    own = at(drafting(*points, **facts)).attention
    assert (own.queries, *ends(own.times), own.kernel) == (None, None, 1.0, 5.0, "")


def test_of_several_kernels_and_shapes():
    """The kernel that is the fastest with 5 queries, though it is not with one; of the model's own
    group.
    """
    slower = {5: (1.1, 1.1, 1.1)}
    points = timed(), timed(slower, first="b", rate=19.0), timed(slower, first="c", group=8)
    own = at(drafting(*points))
    assert own.attention.kernel == "b, head"
    assert own.step.value == pytest.approx(WEIGHTS + 1.1 * GIB / 19e9)
    assert own.plain.value == pytest.approx(WEIGHTS + GIB / 20e9)


@pytest.mark.parametrize(
    ("cost", "seconds"),
    [
        ("0.1", 1.6 * GIB / 20e9),
        ("10%", 1.6 * GIB / 20e9),
        ("5ms", 0.005),
        ("250 us", 250e-6),
        ("1s", 1.0),
        ("400M", 4 * (400 << 20) / 20e9),
        ("0.5GB", 4 * 0.5e9 / 20e9),
    ],
)
def test_costs(cost, seconds):
    row = at(drafting(timed(), draft=(4, ACCEPT, cost)))
    assert row.cost == pytest.approx(seconds)
    assert row.tokens.value == pytest.approx(2.69 / (row.step.value + seconds))
    assert row.pays == "yes" and row.spare == at(drafting(timed())).spare


@pytest.mark.parametrize(("narrow", "fastest"), [(None, WEIGHTS), (80.0, 5 * 15 * GIB / 80e9)])
def test_multiplying_can_take_longer_than_reading(narrow, fastest):
    """Half as many parameters as bytes; each is multiplied and added, for five tokens: in float32,
    or faster by a factor that is not known of an engine.
    """
    found = drafting(timed(), gflops=50.0, narrow=narrow)
    row, cache, slowest = at(found), GIB / 20e9, 5 * 15 * GIB / 50e9
    assert found.limit == "arithmetic" and found.parameters == 15 * GIB // 2
    assert (found.reading, found.float32) == pytest.approx((WEIGHTS, slowest))
    steps = (fastest + 1.2 * cache, slowest + 1.4 * cache)
    assert ends(row.step)[1:] == pytest.approx(steps) and row.step.value is None
    times = sorted(2.69 * 16 * cache / each for each in steps)
    assert ends(row.times)[1:] == pytest.approx(times) and row.times.value is None
    assert row.plain.value == pytest.approx(16 * cache), "one token is multiplied while it is read"


def test_parameters_are_the_model_s_however_they_are_stored():
    """Multiplying 15 GiB of two bytes each takes longer than to read 5 GiB, of one token, too."""
    found = drafting(timed(), gflops=50.0, given=5 * GIB)
    plain = at(found).plain
    assert found.parameters == 15 * GIB // 2 and found.read == 5 * GIB
    assert (plain.low, plain.high) == pytest.approx((6 * GIB / 20e9, 15 * GIB / 50e9 + GIB / 20e9))


def test_its_tokens_meet_more_experts():
    """Of 4 experts one token meets 1, and five meet 3.05 on average."""
    weights = Weights(16 * GIB, GIB, routed=12 * GIB, experts=4, chosen=1)
    found = drafting(timed(), shape=replace(LLAMA_8B, weights=weights))
    assert found.read == pytest.approx(GIB + 12 * GIB * (1 - 0.75**5))
    assert at(found).plain.value == pytest.approx(5 * GIB / 20e9)
    assert at(found).step.value == pytest.approx((found.read + 1.3 * GIB) / 20e9)
    assert found.parameters == 2 * GIB


def test_a_batch():
    row, one = (at(drafting(timed(), batch=batch)) for batch in (4, 1))
    assert row.step.value - WEIGHTS == pytest.approx(4 * (one.step.value - WEIGHTS))
    assert row.tokens.value == pytest.approx(4 * 2.69 / row.step.value)


def spans(found):
    return [(own.pays, own.first, own.last) for own in found.formats[0].spans]


def test_where_it_pays():
    """A draft that is accepted in half of the steps, against attention that takes twice as long:
    the cache is 1 of 16 GiB at 8,192 tokens, 16 of 31 at 131,072.
    """
    twice = timed({2: (2.0, 2.0, 2.0)})
    assert spans(drafting(twice, draft=(1, "0.5", None))) == [
        ("if", 512, 65536),
        ("no", 131072, 131072),
    ]
    assert spans(drafting(draft=(1, "1", None))) == [("if", 512, 131072)]
    assert spans(drafting(draft=(1, "0", None))) == [("no", 512, 131072)]
    unsure = timed({2: (2.0, 1.0, 2.1)})
    assert spans(drafting(unsure, draft=(1, "0.5", "0.1")))[-1] == ("open", 131072, 131072)


def test_one_share_stands_for_its_powers():
    assert asked(3, ".5", None).accept == pytest.approx((0.5, 0.25, 0.125))
    assert not asked(1, ".5", None).powers and asked(2, ".5", None).powers


def test_a_run_tells_how_much_longer_several_queries_take(tmp_path):
    """With 4 queries f16 takes 1.2 times as long as with one there, with 8 it takes 2.4 times;
    launches lie within 2 %.
    """
    visits = family("f16", HEADS[0], 4096)
    records = visits + [probe(launch, 20.0, READ) for launch in range(LAUNCHES)]
    points = list(dict.fromkeys(record.point for record in records))
    directory(tmp_path, records, points, launches=LAUNCHES)
    (tmp_path / "machine.json").write_text(json.dumps(plain(profile(MACHINE, (), records))))
    run = known(tmp_path)
    for drafts, queries, times in ((3, 4, 1.2), (4, 8, 2.4)):
        own = at(drafted(explained(known=run), run, asked(drafts, ".5", None), ())).attention
        assert own.queries == queries and own.times.value == pytest.approx(times, rel=1e-3)
        assert 0.98 * 1.2 < own.times.low < 1.2 and times < own.times.high < 1.02 * times
        assert (own.group, own.context) == (4, 4096) and own.gbps == pytest.approx(20, rel=0.1)


TWICE = timed({2: (2.0, 2.0, 2.0)})
WORDS = [
    (
        {"points": (TWICE,), "draft": (1, ".5", None)},
        "Drafting 1 token with KV in f16 pays up to 65,536 tokens if it costs less than 188 ms a"
        " step, and does not pay from 131,072 tokens on.",
    ),
    (
        {"points": (timed(),), "draft": (3, ".7,.45,.33", None)},
        "At 4,096 tokens attention with 4 queries takes 1.3 (1 to 1.4) times as long as with one"
        " (the time of 5 queries is used): measured with a, head, 4 query heads on a KV head and"
        " 4,096 tokens.",
    ),
    (
        {"points": (timed(),), "draft": (2, ".5", "5ms")},
        "gives 1.75 tokens on average: 1, plus 0.5 + 0.25 accepted drafts (powers of 0.5).",
    ),
    (
        {"points": (timed(),), "draft": (4, ACCEPT, "5ms")},
        "2.65 (2.64 to 2.66) times the tokens/s: a step takes 5 ms to draft and 838 ms to 843 ms to"
        " verify; a plain step takes 832 ms.",
    ),
    (
        {"draft": (1, ".5", ".4")},
        "Drafting 1 token with KV in f16 pays up to 8,192 tokens, and may pay or not from 16,384",
    ),
    (
        {"gflops": 50.0},
        "in 805 ms. Multiplying 8.05 billion parameters with these tokens takes longer in float32,"
        " 1.61 s, and less in bytes or bf16. The bounds cover both.",
    ),
]


@pytest.mark.parametrize(("facts", "words"), WORDS)
def test_words(facts, words):
    facts = dict(facts)
    found = drafting(*facts.pop("points", ()), **facts)
    base = replace(of_model(LLAMA_8B), drafting=found, gflops=facts.get("gflops", 400.0))
    said = drafted_lines(base)
    assert words in " ".join(said) and not any(word in str(said) for word in ("None", "nan")), said


# ---- as it is called -----------------------------------------------------------------------------

CALL = ("explain", "llama-3-8b", "--machine", RUN, "--draft", "4", "--accept", ACCEPT)


def test_text_page_and_json(capsys):
    """The run has no decode with several queries: the text says so, and the answer is a range."""
    text = output_of(capsys, *CALL)
    assert "Drafting 4 tokens with KV in f16 pays at every context to 8,192 tokens if" in text
    assert "Not measured" in text and "gives 2.69 tokens on average" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120
    page = output_of(capsys, *CALL, "--markdown", "--draft-cost", "2s", "--dtype", "f16,i8")
    assert page.count("does not pay at any context") == 2 and page.count("```") == 4
    found = json.loads(output_of(capsys, *CALL, "--json"))["drafting"]
    assert found["accept"] == [0.7, 0.45, 0.33, 0.21] and found["formats"][0]["dtype"] == "f16"


BAD = [
    ("--draft 4", "--accept"),
    ("--accept .5", "--draft"),
    ("--draft-cost 5ms", "--draft"),
    ("--draft 0 --accept .5", "1 to 31"),
    ("--draft 32 --accept .5", "1 to 31"),
    ("--draft 4 --accept .5,.4", "2 numbers", "4"),
    ("--draft 2 --accept .4,.5", "rises"),
    *((f"--draft 1 --accept {text}", "0 to 1") for text in ("1.5", "nan", "much", "-1", ",")),
    *((f"--draft 1 --accept .5 --draft-cost {text}", "5ms") for text in ("5h", "-1", "nan", "ms")),
    ("--draft 1 --accept .5 --dtype f17", "f17", "f16"),
    ("--dtype f17", "f17", "f16"),
    ("--dtype q8_0+q5", "q5", "q4_0"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_nonsense(case, capsys):
    refused(capsys, *CALL[:4], *case[0].split(), words=case[1:])


def test_weights_must_be_known(capsys):
    words = ("--draft", "--weights")
    refused(capsys, "explain", "gpt-2", *CALL[2:], words=words)
