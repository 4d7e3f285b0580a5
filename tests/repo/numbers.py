"""The sentences that state numbers on README.md and on the pages of results/, with their sources.

A sentence is a template, with `{}` for each number, and a function that computes the numbers from
their source: a constant of the code, a suite, a kept run, a file. tests/repo/test_numbers.py checks
that the page has the sentence with these numbers, and that each number of a page lies in a sentence
or in an allowed phrase.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvbench.analysis.answers.trust import _SCATTER, FAIR, FEWEST, GOOD
from kvbench.analysis.differs import trend
from kvbench.analysis.differs.compare.words import LIMITS as COMPARED
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.analysis.judge import fewest
from kvbench.analysis.limits.bounds import CLOSE
from kvbench.analysis.measured.speeds import SLOW
from kvbench.errors import Exit
from kvbench.gate import stages
from kvbench.gate.gate import BUDGET
from kvbench.regime import THRESHOLDS
from kvbench.report.words.compared import ADVISED
from kvbench.score import consistency, definition
from tests.repo import case, sources
from tests.repo.sources import percent, word


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


# ---- sentences -----------------------------------------------------------------------------------

README = (
    Sentence(
        "write a report: about {} minutes",
        lambda: [word(sources.measured("make-sweep")["minutes"])],
    ),
    Sentence(
        "run the tests: about {} minutes", lambda: [word(sources.measured("make-test")["minutes"])]
    ),
    Sentence(
        "virtual machine with {} cores of a Zen 4", lambda: [word(sources.cores("zen4-kvm-2"))]
    ),
    constant("`limit`: the share that surely reaches {}%", percent(CLOSE)),
    Sentence("Llama-3-8B, {:,} tokens, {} sequence, all cores", sources.score_workload),
    Sentence("Python {} or newer", sources.python),
    constant(
        "is the new build of my engine slower? Exit code {}: yes. {}: not clear. {}: no.",
        *map(int, (Exit.FAILED, Exit.UNCLEAR, Exit.FINE)),
    ),
    Sentence(
        "| Zen 4, Zen 5, Sapphire Rapids: virtual, {} cores |",
        lambda: [word(sources.same_cores())],
    ),
    Sentence("| Zen 3: virtual, {} cores |", lambda: [word(sources.same_cores())]),
    Sentence("To cite: kvbench {}, score {},", sources.versions),
)

LISTED = (
    Sentence("| the same build twice | {} of {} |", partial(sources.selftest, "same")),
    Sentence(
        "| the same code, linked in another order | {} of {} |",
        partial(sources.selftest, "rebuild"),
    ),
    Sentence(
        "| the same build, beside a program that reads memory | {} of {} |",
        partial(sources.selftest, "contaminated"),
    ),
    Sentence(
        "| some kernels read {}% or {}% of their rows again | {} of {} |",
        lambda: (10, 20, *sources.selftest("slow", " 10%", " 20%")),
    ),
    Sentence(
        "| some kernels read {}% of their rows again | {} of {} |",
        lambda: (5, *sources.selftest("slow", " 5%")),
    ),
    Sentence(
        "| the same on both sides | {} of {} | {} |", partial(sources.engine_row, "same", "-")
    ),
    Sentence(
        "| HEAD spins for {}% | {} of {} | {} |", lambda: (3, *sources.engine_row("slow", "3%"))
    ),
    Sentence(
        "| HEAD spins for {}% | {} of {} | {} |", lambda: (10, *sources.engine_row("slow", "10%"))
    ),
)

READING = (
    constant(
        "A limit is reached if the low end of its share's interval is at {}% or more",
        percent(CLOSE),
    ),
    constant("an interval crosses {}%", percent(CLOSE)),
    constant("scatter is at most {}%, and every", percent(_SCATTER[GOOD])),
    constant("| fair | scatter is at most {}% |", percent(_SCATTER[FAIR])),
    constant("the typical point has fewer than {} launches", FEWEST),
)

RULES = definition.RULES
SCORES = (
    constant("## What score {} measures", definition.VERSION),
    Sentence(
        "{} layers, {} query heads on {} KV heads of {}; {} tokens, {} sequence;", sources.workload
    ),
    constant("until the data is {:.0f} times as large as the last-level caches", THRESHOLDS.dram),
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
    Sentence("({} sequences of {}, and {} of {}; {} launches each)", sources.longer),
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
        lambda: (sources.suite("gate")["launches"], stages._LEAST),
    ),
    constant("A slowdown counts from {}% for all points", percent(JUDGED.family)),
    constant("and from {}% for a single point.", percent(JUDGED.point)),
    constant("{} points have BASE on both sides", stages.CONTROLS),
    constant("by default to {:.0f} minutes", BUDGET / 60),
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
        "Heads of Llama-3-8B, {:,} tokens,", lambda: [sources.suite("engine")["axes"]["context"]]
    ),
    constant("{:.0f} minutes to measure and confirm", BUDGET / 60),
    Sentence(
        "Memory: {} GiB, or {} times the last-level caches if these are larger than {} MiB.",
        sources.engine_memory,
    ),
    constant(
        "A change of less than {}% over {} points or more, or of less than {}% of fewer points.",
        percent(JUDGED.family),
        JUDGED.members,
        percent(JUDGED.point),
    ),
    constant("has {} points with `--context 1k,4k,16k`.", JUDGED.members),
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
        " one in {} runs.",
        lambda: (0.5, sources.false_steps(0.5, 100), 100),
    ),
    Sentence(
        "With {} points a history shows a step after {} runs at the earliest, and later {} runs"
        " after the change at the earliest.",
        lambda: (200, *sources.first_step(200)),
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
    "results/engine-at-8k.md": tuple(Sentence(*each) for each in case.SENTENCES),
}

# ---- words of numbers that state nothing ---------------------------------------------------------

# Patterns of phrases in which a number is grammar, or an example that a reader can see to be one.
ALLOWED = (
    r"\b(?:a|the|this|that|no|any|each|every|last|like this|show) one\b",
    r"\bone (?:page|machine|process|token|build of ggml|line|JUnit failure|another)\b",
    r"\btwo (?:builds|runs|machines|run directories|plug-ins|points that|more lines)\b",
    r"\btwo of its figures\b",
    r"\bbuild twice\b|\bloaded twice\b",
    r"queries a step beside one\b",
    r"decodes fastest at 32k tokens\?",
    # the question of results/engine-at-8k.md, where its numbers are checked
    r"Why does an engine lose more than half of its speed at 8k tokens\?",
    # an example of a line that the gate prints
    r"all 40 decode\.flash points are 2\.1 % slower \(1\.4\.\.2\.8\)",
)
