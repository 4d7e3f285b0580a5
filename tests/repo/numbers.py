"""The sentences that state numbers on README.md and on the pages of results/, with their sources.

A sentence is a template, with `{}` for each number, and a function that computes the numbers from
their source: a constant of the code, a suite, a kept run, a file. tests/repo/test_numbers.py demands
that the page has the sentence with these numbers, and that each number of a page lies in a sentence
or in an allowed phrase.
"""

import csv
import json
import math
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np

from kvbench.analysis.answers import trust
from kvbench.analysis.differs import trend
from kvbench.analysis.differs.compare.words import LIMITS as COMPARED
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.analysis.judge import fewest
from kvbench.analysis.limits.bounds import CLOSE
from kvbench.analysis.measured.speeds import SLOW
from kvbench.errors import Exit
from kvbench.gate import gate, stages
from kvbench.native import default_library
from kvbench.plan.needs import PROCESS
from kvbench.regime import FAR_BYTES, THRESHOLDS
from kvbench.report.words.compared import ADVISED
from kvbench.score import consistency, definition
from kvbench.units import GIB, MIB
from tests.analysis.differs.test_trend import following, series
from tests.raw import ROOT
from tests.repo.scan import WORDS

RESULTS, SUITES = ROOT / "results", ROOT / "suites"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A template, and a function that returns the numbers in their order."""

    template: str
    values: Callable[[], Iterable[Any]]

    def text(self) -> str:
        """The sentence with its numbers."""
        return self.template.format(*self.values())


def constant(template: str, *values: Any) -> Sentence:
    """A sentence about constants of the code."""
    return Sentence(template, lambda: values)


def percent(share: float) -> str:
    """A share, as pages write it before " %"."""
    return f"{100 * share:.3g}"


def word(number: int) -> str:
    """A number up to twenty as a word."""
    return WORDS[number - 1]


# ---- sources -------------------------------------------------------------------------------------


@cache
def suite(name: str) -> dict[str, Any]:
    """The file of a suite."""
    return tomllib.loads((SUITES / f"{name}.toml").read_text())


@cache
def measured(name: str) -> dict[str, Any]:
    """A time that was measured by hand, and how."""
    return tomllib.loads((RESULTS / "measured.toml").read_text())[name]


@cache
def table(name: str) -> list[dict[str, str]]:
    """The lines of a CSV table of results/."""
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def cores(machine: str) -> int:
    """How many CPUs a kept run of the suite quick saw."""
    path = RESULTS / machine / "quick" / "machine.json"
    return len(json.loads(path.read_text())["topology"]["cpus"])


def same_cores() -> int:
    """How many CPUs each machine of results/ has: all have as many."""
    (found,) = {cores(path.parts[-3]) for path in RESULTS.glob("*/quick/machine.json")}
    return found


def red(name: str, least: str = "", **wanted: str) -> tuple[int, int]:
    """Of the gates in a table with these words: how many said REGRESSION, and how many there are.
    `least`: the column whose last line says which lines count.
    """
    rows = table(name)
    own = [
        row
        for row in rows
        if (not least or row[least] == rows[-1][least])
        and all(row[key].endswith(value) for key, value in wanted.items())
    ]
    return sum(row["verdict"] == "REGRESSION" for row in own), len(own)


GATES, ENGINES = "zen3-kvm-2/gate/runs.csv", "zen5-kvm-2/engine-gate.csv"


def selftest(exercise: str, *cases: str) -> tuple[int, int]:
    """Of the gates of kernels, as red()."""
    counts = [red(GATES, exercise=exercise, case=case) for case in cases or ("",)]
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


def engines(exercise: str, case: str) -> tuple[int, int]:
    """Of the gates of ggml, as red(): those of the newest commit."""
    return red(ENGINES, "commit", exercise=exercise, case=case)


def engine_seconds(exercise: str, case: str) -> int:
    """The median time of these gates."""
    newest = table(ENGINES)[-1]["commit"]
    return int(
        median(
            float(row["seconds"])
            for row in table(ENGINES)
            if (row["commit"], row["exercise"], row["case"]) == (newest, exercise, case)
        )
    )


def engine_row(exercise: str, case: str) -> tuple[int, int, int]:
    """Numbers of a row of the table of engine gates."""
    return *engines(exercise, case), engine_seconds(exercise, case)


def first_step(points: int) -> tuple[int, int]:
    """When a history of so many points shows a step at the earliest: the number of runs; and, later
    on, of runs since the step. By the exact chance of the clearest order of ranks, times the number
    of runs and of points.
    """
    limits = trend.LIMITS

    def clear(before: int, after: int) -> bool:
        chance = 2 * (before + after) / math.comb(before + after, after)
        return chance * points <= limits.rate

    runs = next(runs for runs in range(2, 200) if clear(runs // 2, runs // 2))
    since = next(after for after in range(1, 200) if clear(limits.window, after))
    return runs, since


@cache
def false_steps(like: float) -> str:
    """Share of simulated points without a step that show one, if the noise of consecutive runs
    correlates: percent.
    """
    chance = np.random.default_rng(1)
    made = [series(following(chance, 60, like=like)) for _ in range(500)]
    found = trend.trends(made)
    return f"{100 * sum(bool(each.steps) for each in found) / len(found):.0f}"


def model() -> dict[str, int]:
    """The model of the score: its numbers."""
    known = tomllib.loads((SUITES / "models.toml").read_text())
    return known[suite("score")["axes"]["model"]]


def workload() -> tuple[Any, ...]:
    """Numbers of the score's workload."""
    own, context = model(), suite("score")["axes"]["context"]
    heads = own["q_heads"], own["kv_heads"], own["head_dim"]
    return own["layers"], *heads, f"{context:,}", word(1)


def longer() -> tuple[Any, ...]:
    """Numbers of the score's line of more tokens."""
    (many, context), (one, long) = definition.LONGER
    return many, f"{context:,}", word(one), f"{long:,}", definition.LONGER_LAUNCHES


def example_lines() -> list[int]:
    """Lines of the plug-in to begin with."""
    return [len((ROOT / "kernels" / "example" / "plugin.c").read_text().splitlines())]


def experiments() -> list[str]:
    """How many experiments the notebook has, as a word that begins a sentence."""
    cells = json.loads((SUITES / "experiments.ipynb").read_text())["cells"]
    count = sum("".join(cell["source"]).startswith("## ") for cell in cells)
    return [word(count).capitalize()]


def kernels() -> tuple[str, str]:
    """How many number formats and layouts there are, as words."""
    return tuple(word(len(default_library().words(kind))) for kind in ("dtype", "layout"))  # type: ignore[return-value]


def queries() -> tuple[int, int]:
    """The fewest queries of the suite speculate that are several, and the most."""
    several = [count for count in suite("speculate")["axes"]["q_len"] if count > 1]
    return min(several), max(several)


def engine_memory() -> tuple[str, int, int]:
    """What a gate of engines needs: GiB; or how many times the last-level caches, if these have more
    MiB. Four copies: the room of the library, the values, and a store of each side.
    """
    copies, process = 4, PROCESS
    times = copies * THRESHOLDS.dram
    return f"{(copies * FAR_BYTES + process) / GIB:.1f}", int(times), int(
        FAR_BYTES / THRESHOLDS.dram / MIB
    )


# ---- sentences -----------------------------------------------------------------------------------

README = (
    Sentence("C kernels for {} number formats and {} cache layouts", kernels),
    Sentence("about {} minutes", lambda: [word(measured("make-sweep")["minutes"])]),
    Sentence("about {} minutes", lambda: [word(measured("make-test")["minutes"])]),
    Sentence("from a {}-core virtual machine", lambda: [word(cores("zen4-kvm-2"))]),
    Sentence("attention with {} to {} queries", queries),
    constant(
        "It exits with {} for a confirmed regression, with {} where it is not clear, and with {}"
        " where nothing became slower",
        *map(int, (Exit.FAILED, Exit.UNCLEAR, Exit.FINE)),
    ),
    Sentence("[{} experiments](suites/experiments.ipynb)", experiments),
    Sentence("begin with [{} lines of C](kernels/example/plugin.c)", example_lines),
    Sentence("Measured on virtual machines of {} cores", lambda: [word(same_cores())]),
)

LISTED = (
    Sentence("| the same build twice | {} of {} |", partial(selftest, "same")),
    Sentence(
        "| the same code, linked in another order | {} of {} |", partial(selftest, "rebuild")
    ),
    Sentence(
        "| the same build, beside a program that reads memory | {} of {} |",
        partial(selftest, "contaminated"),
    ),
    Sentence(
        "| some kernels read {}% or {}% of their rows again | {} of {} |",
        lambda: (10, 20, *selftest("slow", " 10%", " 20%")),
    ),
    Sentence(
        "| some kernels read {}% of their rows again | {} of {} |",
        lambda: (5, *selftest("slow", " 5%")),
    ),
    Sentence("| the same on both sides | {} of {} | {} |", partial(engine_row, "same", "-")),
    Sentence("| HEAD spins for {}% | {} of {} | {} |", lambda: (3, *engine_row("slow", "3%"))),
    Sentence("| HEAD spins for {}% | {} of {} | {} |", lambda: (10, *engine_row("slow", "10%"))),
)

READING = (
    constant("A limit is reached if the low end of its share's interval is at {}% or more",
             percent(CLOSE)),
    constant("an interval crosses {}%", percent(CLOSE)),
    constant("scatter is at most {}%, and every", percent(trust._SCATTER[trust.GOOD])),
    constant("| fair | scatter is at most {}% |", percent(trust._SCATTER[trust.FAIR])),
    constant("the typical point has fewer than {} launches", trust.FEWEST),
)

RULES = definition.RULES
SCORES = (
    constant("## What score {} measures", definition.VERSION),
    Sentence(
        "{} layers, {} query heads on {} KV heads of {}; {} tokens, {} sequence;", workload
    ),
    constant("to be {:.0f} times as large as the last-level caches", THRESHOLDS.dram),
    constant("The data is {:.0f} times as large as the last-level caches", THRESHOLDS.dram),
    constant(
        "{} bits (f16 or bf16) by `flash`, which is exact; {} bits (i8, q8_0 or e4m3) and {} bits"
        " (q4_0)",
        *definition.WIDTHS,
    ),
    constant(
        "e5m2 rounds as coarsely as {} bits, so it is not counted as {}.",
        *reversed(definition.WIDTHS[1:]),
    ),
    Sentence(
        "`{} #{}` is the version and a digest of workload, bytes and rules",
        lambda: (definition.VERSION, definition.digest()),
    ),
    Sentence("({} sequences of {}, and {} of {}; {} launches each)", longer),
    constant("all other cores of a NUMA node decode {} bits", definition.WIDTHS[0]),
    constant("interval of a tuned figure reaches more than {}%", percent(RULES.half_width)),
    constant("There are at least {} launches", RULES.launches),
    constant("other work met at most {}% of its samples", percent(RULES.disturbed)),
    constant(
        "its plain reads had at least {}% of the other launches' speed, its cores {}% of theirs",
        f"{100 * RULES.slower:.0f}",
        percent(SLOW),
    ),
    constant("Its bytes are right within {}%", percent(RULES.counted)),
    constant(
        "Reads beside each point reach {} to {}% of the best reads", *map(percent, RULES.reads)
    ),
    constant("a rate is above {} bytes a cycle and core", consistency.BYTES),
    constant("or {} GHz if that is lower", consistency.CLOCK),
    constant("a point is more than {} times as fast as reads", consistency.READS),
    constant("whether points were made {}% faster", percent(consistency.READS - 1)),
)

COMPARING = (
    constant("the interval lies within {}% on both sides", percent(JUDGED.same)),
    Sentence(
        "Fewer than {} launches a side show nothing, and fewer than {} show nothing of a single"
        " point among {}.",
        lambda: (fewest(1), fewest(50), 50),
    ),
    constant(
        "On a quiet machine {} launches find a slowdown of {}% in {}% of cases.",
        ADVISED,
        percent(COMPARED.unlearned),
        percent(JUDGED.power),
    ),
    constant(
        "{} fine, {} regression, {} not clear, {} not comparable.",
        *map(int, (Exit.FINE, Exit.FAILED, Exit.UNCLEAR, Exit.NOTHING)),
    ),
    Sentence(
        "{0} fresh processes give {0} values for each point. Exact signed ranks find candidates,"
        " which {0} more processes must confirm (at least {1} if time is short).",
        lambda: (suite("gate")["launches"], stages._LEAST),
    ),
    constant("A slowdown counts from {}% for all points", percent(JUDGED.family)),
    constant("and from {}% for a single point.", percent(JUDGED.point)),
    constant("{} points have BASE on both sides", stages.CONTROLS),
    constant("by default to {:.0f} minutes", gate.BUDGET / 60),
)

GATING = (
    constant("| {} | EQUIVALENT, IMPROVEMENT |", int(Exit.FINE)),
    constant("| {} | REGRESSION |", int(Exit.FAILED)),
    constant("| {} | INCONCLUSIVE |", int(Exit.UNCLEAR)),
    constant("| {} | CONTAMINATED |", int(Exit.UNCLEAR)),
    constant("| {} | – | a side crashed", int(Exit.ERRORS)),
    constant(
        "| {}, {}, {} | – | it did not judge: bad input, a failed build, or no point",
        *map(int, (Exit.USAGE, Exit.REFUSED, Exit.NOTHING)),
    ),
    constant("With {} the workflows leave the job green.", int(Exit.UNCLEAR)),
    Sentence(
        "Heads of Llama-3-8B, {:,} tokens,", lambda: [suite("engine")["axes"]["context"]]
    ),
    constant("{:.0f} minutes to measure and confirm", gate.BUDGET / 60),
    Sentence(
        "Memory: {} GiB, or {} times the last-level caches if these are larger than {} MiB.",
        engine_memory,
    ),
    constant(
        "A change of less than {}% over {} points or more, or of less than {}% of fewer points.",
        percent(JUDGED.family),
        JUDGED.members,
        percent(JUDGED.point),
    ),
    constant("has {} points with `--context 1k,4k,16k`.", JUDGED.members),
    Sentence(
        "On a virtual machine of {} cores a gate took {} to {} seconds, median.",
        lambda: (
            word(cores("zen5-kvm-2")),
            engine_seconds("same", "-"),
            engine_seconds("slow", "10%"),
        ),
    ),
)

HISTORY = (
    constant("From {} runs on it needs", 2 * trend.LIMITS.least),
    constant(
        "at least {}% of a point, or {}% of a family",
        percent(trend.LIMITS.effect),
        percent(trend.LIMITS.family),
    ),
    constant("At most {}% of the reported steps are false.", percent(trend.LIMITS.rate)),
    Sentence(
        "If the noise of consecutive runs correlates at {}, about {}% of points without a step show"
        " one.",
        lambda: (0.5, false_steps(0.5)),
    ),
    Sentence(
        "Among {} points no step shows before run {}, and later none before run {} after it.",
        lambda: (200, *first_step(200)),
    ),
    constant("With `--gate` the exit code is {} while a step down is open.", int(Exit.FAILED)),
)

CI = (
    constant("| {} fine |", int(Exit.FINE)),
    constant("| {} a confirmed regression;", int(Exit.FAILED)),
    constant(
        "| {} usage, bad input · {} the environment does not allow it · {} nothing comparable |",
        *map(int, (Exit.USAGE, Exit.REFUSED, Exit.NOTHING)),
    ),
    constant("| {} INCONCLUSIVE or CONTAMINATED |", int(Exit.UNCLEAR)),
    constant("| {} a kernel crashed or gave a wrong answer |", int(Exit.ERRORS)),
    constant("| {} interrupted, as by a job that was cancelled |", int(Exit.INTERRUPTED)),
)

SENTENCES: dict[str, tuple[Sentence, ...]] = {
    "README.md": README,
    "results/README.md": LISTED,
    "results/reading-a-report.md": READING,
    "results/scores.md": SCORES,
    "results/comparing.md": COMPARING,
    "results/gate-your-engine.md": GATING,
    "results/history.md": HISTORY,
    "results/ci.md": CI,
}

# ---- words of numbers that state nothing ---------------------------------------------------------

# Patterns of phrases in which a number is grammar, or an example that a reader can see to be one.
ALLOWED = (
    r"\b(?:a|the|this|that|no|any|each|every|last|like this|show) one\b",
    r"\bone (?:page|machine|process|token|build of ggml|line|JUnit failure|another)\b",
    r"\btwo (?:builds|runs|machines|run directories|plug-ins|points that|more lines|of its figures)\b",
    r"\bbuild twice\b|\bloaded twice\b",
    r"queries a step beside one\b",
    r"decodes fastest at 32k\?",
    # an example of a line that the gate prints
    r"all 40 decode\.flash points are 2\.1% slower \(1\.4\.\.2\.8\)",
)
