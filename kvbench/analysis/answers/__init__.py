"""The answers that a run gives, each question once. Every form of a report shows these values."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.answers.decodes import Decodes, decodes
from kvbench.analysis.answers.factors import Factors, factors
from kvbench.analysis.answers.l3 import L3, l3
from kvbench.analysis.answers.latency import Latency, latency
from kvbench.analysis.answers.memory import Reads, reads
from kvbench.analysis.answers.mixed import Mixed, mixture
from kvbench.analysis.answers.prefetch import prefetch
from kvbench.analysis.answers.servers import Servers, servers
from kvbench.analysis.answers.serving import Serving, serving
from kvbench.analysis.answers.speculate import Speculation, speculation
from kvbench.analysis.answers.step import Steps, steps
from kvbench.analysis.answers.storing import Storing, storing
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.trust import Trust, trust
from kvbench.analysis.answers.workload import Workload, workload
from kvbench.analysis.measured.columns import machine_name
from kvbench.machine.virtual import is_virtual
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Answers:
    machine: Annotated[str, about("name of the machine")]
    virtual: Annotated[bool, about("whether it is a virtual machine")]
    workload: Annotated[Workload, about("workload that the page is about")]
    decodes: Annotated[Decodes, about("which dtype is the fastest, and what limits each")]
    reads: Annotated[Reads, about("how fast memory and L3 are read")]
    l3: Annotated[L3, about("whether L3 helps, and what fits there")]
    factors: Annotated[
        Factors, about("which layout, variant, block, pages and number of threads to choose")
    ]
    prefetch: Annotated[tuple[Answer, ...], about("what prefetches gain, by level")]
    storing: Annotated[Storing, about("what storing a token costs")]
    steps: Annotated[Steps, about("what whole steps take, and whether their parts add up to them")]
    serving: Annotated[Serving, about("what padding costs a batch of real requests")]
    speculation: Annotated[
        Speculation, about("how much longer attention takes for several queries in a step")
    ]
    mixed: Annotated[
        Mixed,
        about(
            "which formats of K and V to choose at which error; and what operations on scores cost"
        ),
    ]
    latency: Annotated[
        Latency, about("latency of memory beside a scan, and how much measuring it slows the scan")
    ]
    servers: Annotated[Servers, about("a model of servers with another bandwidth per core")]
    trust: Annotated[Trust, about("how far to trust the run")]


def answers(tables: Tables) -> Answers:
    """All answers of a run, each from a file of its own. Differences are corrected over all
    questions together.
    """
    page = workload(tables.tokens, tables.points)
    found, read, chosen = decodes(tables, page), reads(tables, page), factors(tables, page)
    served = serving(tables)
    memory = read.memory.figure.value if read.memory.figure else None
    return Answers(
        machine=machine_name(tables.machine),
        virtual=is_virtual(tables.machine.facts.get("hypervisor")),
        workload=page,
        decodes=found,
        reads=read,
        l3=l3(tables, page),
        factors=chosen,
        prefetch=prefetch(tables, page),
        storing=storing(tables, page, chosen.choices),
        steps=steps(tables, page, served.points),
        serving=served,
        speculation=speculation(tables, page),
        mixed=mixture(tables, page),
        latency=latency(tables, page),
        servers=servers(found, page, memory),
        trust=trust(tables),
    )
