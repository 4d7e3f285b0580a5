"""Texts of the first screen: the machine, its answers, and how far to trust them."""

from collections import namedtuple
from collections.abc import Iterator

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.decodes import Decode
from kvbench.analysis.answers.factors import Choice
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import machine_name
from kvbench.machine.virtual import is_virtual
from kvbench.model import Check, Machine
from kvbench.report.words import paragraphs, said
from kvbench.store import Manifest
from kvbench.units import counted, size

Tile = namedtuple("Tile", ("title", "value", "detail"))
_CACHES = {"l1d": "{} L1", "l2": "{} L2", "l3": "{} L3"}


def title(found: Findings) -> str:
    return f"Decode attention on {machine_name(found.machine)}"


def subtitle(found: Findings, manifest: Manifest) -> str:
    trust = found.answers.trust
    made = f"{counted(trust.points, 'point')}, {counted(trust.launches, 'launch')}"
    fewest = f" ({trust.fewest} or more for each point)" if trust.points else ""
    return f"Suite {manifest.suite}: {made}{fewest}, {manifest.created[:10]}, run {found.run}."


def machine(found: Answers) -> str:
    return f"{found.machine} (virtual machine)" if found.virtual else found.machine


def hardware(found: Machine, checks: tuple[Check, ...]) -> str:
    """The machine's cores, instruction set, clock, caches and nodes, in one line."""
    return " · ".join(_hardware(found, checks))


def _hardware(found: Machine, checks: tuple[Check, ...]) -> Iterator[str]:
    known = {name: fact.value for name, fact in found.facts.items() if fact.value is not None}
    cores = counted(len({cpu.core for cpu in found.cpus}), "core")
    yield f"{cores}, {counted(len(found.cpus), 'CPU')}" if known.get("smt") != 1 else cores
    virtual = is_virtual(found.facts.get("hypervisor"))
    tiers = known.get("isa")
    if isinstance(tiers, list) and tiers:
        yield str(tiers[-1]).upper()
    clocks = (check.value for check in checks if check.name == "core clock")
    yield from (
        f"{clock.partition(' under load')[0]} under load" for clock in clocks if "G" in clock
    )
    for name, words in _CACHES.items():
        if isinstance(bytes_ := known.get(name), int | float):
            shared = " (the host's)" if name == "l3" and virtual else ""
            yield words.format(size(bytes_)) + shared
    yield counted(len(found.nodes) or 1, "NUMA node")


def workload(found: Answers) -> str:
    page = found.workload
    if not page.context:
        return "no decode of a known model"
    model, threads = page.model or "no known model", counted(page.threads, "thread")
    held = counted(page.batch, "sequence")
    return f"{model}, {page.context:,} tokens, {held}, KV cache only, {threads}, from memory"


def kernel(row: Decode) -> str:
    return f"{row.dtype} ({row.variant}, {row.layout})"


def tiles(found: Answers) -> list[Tile]:
    lines = paragraphs("first", "tiles", found, layout(found))
    return [Tile(*line.split(" | ", 2)) for line in lines]


def layout(found: Answers) -> Choice | None:
    """The choice of a layout for the page's workload, which is the first in the answers."""
    choices = found.factors.choices
    return next((each for each in choices if (each.factor, each.op) == ("layout", "decode")), None)


def badge(found: Answers) -> tuple[str, str]:
    """The grade, and what a reader must know about noise."""
    trust = found.trust
    return f"{trust.grade.upper()} RUN", said("first", "trust", trust, found.reads)
