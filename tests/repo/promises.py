"""What each command of the pages must do: what it prints, what it writes, and its exit code.

If a command measures for long, the test makes it short. It takes fewer and shorter samples
(`more`), or a situation of tests/repo/situations.py (`how`) in which visits are played. The command
must still show the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.cli.test_exit_codes import played
from tests.repo.situations import (
    built,
    copied,
    gated,
    halved,
    modelled,
    modelled_peers,
    rivalled,
    scored,
)

BRIEF = ("--samples", "1", "--sample-time", "0.001")


@dataclass(frozen=True)
class Promise:
    """The promise of a command. `shows`: patterns of its standard output. `writes`: patterns by
    file. `after`: commands that must run before it.
    """

    shows: tuple[str, ...]
    writes: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    code: int = 0
    how: Callable | None = None
    more: tuple[str, ...] = ()


def measured(*shows, **more):
    """Promise a sweep that ends in the main answers."""
    return Promise(
        (r"Fastest decode +\S+ ", r"Memory +[\d.]+ GB/s", *shows), **{"how": played} | more
    )


RATIOS = (
    r"\n +unit +1 +2\n",
    r"\n  decode \S+ +tokens/s +[\d.]+ +[\d.]+ \([\d.]+x\)",
    r"\n  memory read +GB/s +[\d.]+ +[\d.]+ \([\d.]+x\)",
    r"\n  1  .* (good|fair|poor) run; ",
    r"\n  2  .* (good|fair|poor) run; ",
)
SIDES = (
    r"\n  base  .* run; ",
    r"\n  head  .* run; ",
    r"\n +unit +base +head\n",
    r"\n  memory read +GB/s +[\d.]+ +[\d.]+ \([\d.]+x\)",
)
WHOLE = r"\A(?!(.|\n)*\n  stopped )"  # all planned launches were made
PLUGIN = ("kvbench verify --example > my.c", "cc")
BASE = "kvbench sweep smoke --launches 12 --out runs/base"
HEAD = "kvbench sweep smoke --launches 12 --out runs/head"
SMALL = "kvbench sweep smoke --axis context=1k,4k --axis dtype=f16,i8 --out runs/small"
SCORE = "kvbench score --out runs/score"
PACKED = 'kvbench score --pack runs/score --out mine.tar.gz --name "Zen 4, 2 of 96 cores"'
ADD = "kvbench history add results/spr-kvm-2/quick"
BLESSED = "kvbench compare results/mymachine/quick runs/new --bless"
MINE, NEW = "kvbench sweep quick --out runs/mine", "kvbench sweep quick --out runs/new"
AT_32K = "kvbench sweep quick --axis context=32k --axis dtype=f16,i8,q4_0 --out runs/32k --report"
EXPORTED = (
    "kvbench compare runs/base runs/head --gate --export junit=compare.xml --export csv=compare.csv"
)
PROFILED = (
    "kvbench profile decode --model llama-3-8b --context 4096"
    " --dtype f16 --layout head --threads all"
)
SIZED = (
    "kvbench size llama-3-8b --context 4096 --budget 40GiB"
    " --lengths uniform:1-4096 --machine results/zen4-kvm-2/quick"
)
PREDICTED = (
    "kvbench explain llama-3-8b --weights 16GB --machine results/zen4-kvm-2/peers"
    " --engine ggml --dtype f16 --measured 1.62@4k"
)

DRAFTED = (
    "kvbench explain llama-3-8b --draft 3 --accept .7,.45,.33"
    " --machine results/zen5-kvm-2/speculate"
)

README = {
    MINE: measured(r"run +runs/mine"),
    "kvbench report runs/mine results/zen4-kvm-2/quick --out both": Promise(
        RATIOS,
        {
            "both/index.html": (
                r"2 runs(.|\n)*tokens/s; (flash|dot), \w+(.|\n)*[\d.]+ tokens/s \([\d.]+x\)"
            )
        },
        (MINE,),
    ),
    AT_32K: measured(
        r"32,768 tokens",
        r"Fastest decode +[\d.]+ tokens/s +(no clear lead among )?(f16|i8|q4_0) \(",
        writes={"runs/32k/report/index.html": ""},
    ),
    "kvbench size llama-3-8b --context 32768 --budget 40GiB --machine results/zen4-kvm-2/quick": (
        Promise(
            (
                r"4,294,967,296 bytes \(4 GiB\)",
                r"9 whole sequences of 32,768",
                r"K and V alone +[\d.]+ ",
            )
        )
    ),
    "kvbench explain gemma-3-4b --machine results/zen4-kvm-2/quick": Promise(
        (r"At 131,072 tokens, reading the weights is the limit", r"KV format: \w+\.", r"\nMemory: ")
    ),
    "kvbench peers --model llama-3-8b --dtype f16 --launches 6 --report": Promise(
        (r"\n +report +runs/\S+/report/index.html",),
        {"runs/*/report/index.html": "numpy"},
        how=played,
    ),
    "kvbench verify --example > my.c": Promise((), {"my.c": r"kvb_work"}),
    "kvbench verify --plugin my.so": Promise(
        (r"decode textbook", r": all well\n"), after=PLUGIN, more=("--quick",)
    ),
    "kvbench profile decode --plugin my.so --variant textbook --dtype f32 --model llama-3-8b": (
        Promise(
            (r"^decode\.textbook\.", r"core speed: same kernel", r"limit: \w+"),
            after=PLUGIN,
            more=BRIEF,
        )
    ),
}

SUITES = {
    "kvbench list suites": Promise((r"(?m)^quick +\d+ points +up to \d+ min ", r"(?m)^score ")),
    "kvbench sweep --dry-run": Promise((r"^quick: ", r"time: up to \d+ min", r"memory: ")),
    SMALL: Promise((WHOLE, r"run +runs/small"), {"runs/small/journal.jsonl": ""}, how=played),
    "kvbench sweep --out runs/small --resume": Promise(
        (WHOLE, r"run +runs/small"), after=(SMALL,), how=halved
    ),
    "kvbench sweep batch --axis batch=8 --axis lengths=even,ragged:1 --dry-run": Promise(
        (r"^batch: ", r"lengths +even ragged:1\n")
    ),
    "kvbench sweep step": Promise((WHOLE, r"run +runs/"), how=played),
    "kvbench sweep l3fit": Promise((WHOLE, r"run +runs/"), how=played),
    "kvbench sweep speculate": Promise((WHOLE, r"run +runs/"), how=played),
    "kvbench sweep mixed": Promise((WHOLE, r"run +runs/"), how=played),
    "kvbench sweep latency": Promise((WHOLE, r"run +runs/"), how=played),
    "kvbench profile decode --model gemma-2-9b --context 8k --window 4096 --softcap 50": Promise(
        (r"window 32, cap 50", r"the same with scores as they are"),
        more=(*BRIEF, "--context", "64", "--window", "32", "--layers", "2", "--tuning", "off"),
    ),
    "kvbench profile decode --model llama-3-8b --q-len 4 --mask tree": Promise(
        (r"4 queries of each sequence \(tree\)", r"the same with one query"),
        more=(*BRIEF, "--context", "64", "--layers", "2", "--tuning", "off"),
    ),
    "kvbench profile decode --model llama-3-8b --context 4096 --residency hot"
    " --between 0.5xL3": Promise(
        (r"^decode\.flash\.head\.f16\.", r"the same, nothing read between passes"),
        more=(*BRIEF, "--context", "64", "--between", "64k", "--tuning", "off"),
    ),
    "kvbench profile step --model llama-3-8b --context 4096 --between model:q4_0": Promise(
        (r"^step\.flash\.head\.f16\.", r"tokens/s for each sequence, .* for the batch"),
        more=(*BRIEF, "--context", "64", "--between", "64k", "--tuning", "off"),
    ),
    "kvbench peers --ggml old/libggml.so --ggml new/libggml.so --model llama-3-8b"
    " --launches 6": Promise(
        (r"\n +ggml@old +head", r"\n +ggml@new +head", r"ggml: new takes [\d.]+ of old's time"),
        how=built,
    ),
    "kvbench sweep --tune-only": Promise((r"schedule +times as fast as the default",), how=played),
    "kvbench sweep --schedule weave": measured(),
    "kvbench sweep --axis schedule=off,cross,weave,stream": measured(),
}

READING = {
    "kvbench sweep --report": measured(
        r"Does L3 help\?",
        r"What limits",
        r"(GOOD|FAIR|POOR) RUN",
        writes={"runs/*/report/index.html": "<svg"},
    ),
    "kvbench report results/zen4-kvm-2/quick --out report": Promise(
        (r"Fastest decode +[\d.]+ tokens/s", r"report: report/index.html"),
        {"report/index.html": "<svg"},
    ),
    "kvbench report results/zen4-kvm-2/quick --format md": Promise(
        (r"^# Decode attention on AMD", r"\n\| ")
    ),
    "kvbench report results/zen4-kvm-2/quick results/zen3-kvm-2/quick --out machines": Promise(
        (*RATIOS, r"decode i8 +tokens/s +[\d.]+ +[\d.]+ \([\d.]+x\)"),
        {"machines/index.html": "2 machines, 2 runs"},
    ),
}

SCORES = {
    SCORE: Promise((r"VALID", r"16 bits", r"tokens/s"), how=scored),
    PACKED: Promise((r": VALID; Zen 4, 2 of 96 cores, ",), {"mine.tar.gz": ""}, (SCORE,)),
    "kvbench score --check mine.tar.gz": Promise(
        (r"^[^\n]*: VALID; Zen 4, 2 of 96 cores[^\n]*\n$",), after=(PACKED,)
    ),
    "kvbench report results/* --out gallery": Promise(
        (r"scores of ",), {"gallery/index.html": "tuned"}
    ),
}

COMPARING = {
    BASE: measured(r"run +runs/base"),
    HEAD: measured(r"run +runs/head"),
    "kvbench compare runs/base runs/head": Promise(
        (r"^EQUIVALENT: ", *SIDES, r"\d+ points: \d+ EQUIVALENT"), after=(BASE, HEAD)
    ),
    EXPORTED: Promise(
        (r"^EQUIVALENT: ",),
        {
            "compare.xml": r"<testsuites?\b(.|\n)*<testcase ",
            "compare.csv": r"^[^\n]*\bhead_bytes_per_second\b",
        },
        (BASE, HEAD),
    ),
    "kvbench gate": Promise((r"^EQUIVALENT: ",), how=gated),
    "kvbench gate --base origin/main --head . --export junit=gate.xml": Promise(
        (r"^EQUIVALENT: ",), {"gate.xml": r"<testsuites?\b(.|\n)*<testcase "}, how=gated
    ),
}

HISTORY = {
    ADD: Promise((r": runs/quick\n",), {"runs/quick/summary.json": ""}),
    "kvbench history": Promise(
        (r"points have too few runs to find a step: .* needed\.",), after=(ADD,)
    ),
    "kvbench history --report history": Promise(
        (r"report: history/index.html",), {"history/index.html": "Order of the rows"}, (ADD,)
    ),
    "kvbench history export": Promise(
        (r"^machine,run,created,(.|\n)*,efficiency,(.|\n)*\n",), after=(ADD,)
    ),
}

ADDING = {
    "kvbench report results/* --tables": Promise(
        (r"(?m)^results/zen4-kvm-2/README\.md: ", r"(?m)^results/README\.md: "),
        {"results/zen4-kvm-2/README.md": r"Fastest decode +[\d.]+ tokens/s"},
        how=copied,
    ),
    NEW: measured(),
    BLESSED: Promise((), {"results/mymachine/quick/journal.jsonl": ""}, (NEW,)),
    'kvbench score --pack runs/score --out results/mymachine/score.tar.gz --name "My machine"': (
        Promise(
            (r": VALID; My machine, ",), {"results/mymachine/score.tar.gz": ""}, (BLESSED, SCORE)
        )
    ),
}

GATING = {
    "kvbench gate --engine ggml --base old/libggml.so --head new/libggml.so": Promise(
        (r"^EQUIVALENT: ", r"head libggml\.so \(sha256 \w+\) against base "), how=rivalled
    ),
    "kvbench gate --engine vllm --base old/bin/python --head new/bin/python": Promise(
        (r"^EQUIVALENT: ", r"head new/bin/python \(0\.1, "), how=rivalled
    ),
}

MODELLED = (
    "kvbench peers --model model.gguf --context 256,2k,8k --dtype f16,q8_0 --threads all"
    " --peers ggml --launches 6 --out runs/engine"
)
NUMPY = ("--dtype", "f32", "--context", "64")  # an engine that every installation has
KEPT = (
    "kvbench explain results/zen4-kvm-2/llama-4-layers --machine results/zen4-kvm-2/engine"
    " --engine ggml --dtype "
)
CASE = {
    f"{KEPT}f16 --measured 59.32@16 --measured 50.87@2016 --measured 22.06@8016": Promise(
        (r"\n  f16 +8,016 +memory ", r"Measured at 8,016 tokens in f16")
    ),
    f"{KEPT}q8_0 --measured 79.19@16 --measured 42.95@2016 --measured 17.72@8016": Promise(
        (r"\n  q8_0 +8,016 +memory ", r"Measured at 8,016 tokens in q8_0")
    ),
    MODELLED: Promise(
        (r"run +runs/engine\n",), how=modelled_peers, more=("--peers", "numpy", *NUMPY)
    ),
    "kvbench profile decode --engine ggml --model model.gguf --context 8k --dtype f16": Promise(
        (r"\n  core +\d", r"\n  rest +\d"),
        how=modelled,
        more=("--engine", "numpy", "--threads", "1", *NUMPY, *BRIEF),
    ),
}

IN_DEPTH = {
    PROFILED: Promise(
        (
            r"^decode\.flash\.head\.f16\.",
            r"reads of its own rows",
            r"core speed: same kernel",
            r"limit: ",
            r"stages: qk \d",
        ),
        more=BRIEF,
    ),
    "kvbench sweep smoke --plugin my.so --axis op=decode --axis dtype=f32 --report": measured(
        after=PLUGIN, writes={"runs/*/report/index.html": "textbook"}
    ),
    "kvbench doctor": Promise((r"(?m)^(ok|warn|unknown) ",)),
    "kvbench machine --quick --out machine.json": Promise(
        (r"fingerprint \w+", r"\n  read +", r"Capacities of a cache|No cache is declared"),
        {"machine.json": "ceilings"},
        how=played,
    ),
    "kvbench machine --quick --loaded": Promise(
        (
            r"Latency of memory beside a load: CPU \d+ chases",
            r"\n  decode f16 +100% ",
            r"Latency is [\d.]+x \(",
        ),
        how=scored,
    ),
    SIZED: Promise(
        (
            r"admission: 40 GiB hold 327,680 tokens",
            r"blocks of 16 tokens +257 MiB +0\.36%",
            r"K and V alone +[\d.]+ \([\d.]+\.\.[\d.]+\)",
        )
    ),
    "kvbench sweep threads --dry-run": Promise((r"^threads: ", r"threads +1\b")),
    "kvbench sweep numa": measured(r"this machine has one node|by where the threads run"),
    "kvbench fleet --from shared --out fleet": Promise(
        (r"their pages: kvbench report fleet/\*",), {"fleet/*/manifest.json": ""}
    ),
    "kvbench explain gpt-oss-20b --machine results/zen4-kvm-2/quick --measured 5.2@32k": Promise(
        (
            r"At 131,072 tokens, reading the weights and reading the KV cache take about equally",
            r"KV format: \w+\.",
        )
    ),
    DRAFTED: Promise((r"Drafting 3 tokens with KV in f16 pays at every context to 8,192 tokens",)),
    PREDICTED: Promise(
        (
            r"\n  f16 +4,096 +memory +\d+ ms +[\d.]+ ms +[\d.]+ +[\d.]+ +[\d.]+ +1\.62 +\S+%",
            r"everything else \(other operations, waiting\)",
        )
    ),
    "kvbench list kernels": Promise((r"(?m)^decode\.flash\.head\.f16\.scalar +yes ",)),
    "kvbench verify --quick": Promise(
        (r"planted fault", r": all well\n"), more=("--isa", "scalar")
    ),
    "kvbench profile step --model llama-3-8b --layout paged --between model:q4_0"
    " --grow 256": Promise(
        (
            r"tokens in a row, from a context of",
            r"context +step +fitted line +same step again +decodes alone",
            r"A step takes .* for\s+each\s+token\s+of\s+context",
            r"sum\s+of\s+its\s+parts",
        ),
        more=("--context", "64", "--grow", "24", "--between", "64k", "--tuning", "off"),
    ),
    "kvbench profile decode --engine ggml --model llama-3-8b --dtype f16": Promise(
        (
            r"^numpy, head, f32: \d+% of the read; its core needs",
            r"\n  start +\d",
            r"\n  threads +- +not measured: one thread\n  rest +\d",
            r"The rest contains the parts that are not measured \(threads\)",
        ),
        # one that every installation has
        more=("--engine", "numpy", "--dtype", "f32", "--threads", "1", "--layers", "2", *BRIEF),
    ),
    "kvbench profile bulk --model llama-3-8b --context 1024": Promise(
        (r"^bulk\.", r"lines per token"), more=BRIEF
    ),
    "kvbench profile append --model llama-3-8b --layout position --context 1024": Promise(
        (r"^append\.", r"lines per token"), more=BRIEF
    ),
    "kvbench profile repack --model llama-3-8b --context 1024": Promise(
        (r"^repack\.-\.head\.f16\.", r"copy, ordinary stores +\d"), more=BRIEF
    ),
}

PROMISES = {
    "README.md": README,
    "suites/README.md": SUITES,
    "results/README.md": ADDING,
    "results/reading-a-report.md": READING,
    "results/scores.md": SCORES,
    "results/comparing.md": COMPARING,
    "results/history.md": HISTORY,
    "results/ci.md": {},
    "results/gate-your-engine.md": GATING,
    "results/engine-at-8k.md": CASE,
    "kvbench/cli/README.md": IN_DEPTH,
}
