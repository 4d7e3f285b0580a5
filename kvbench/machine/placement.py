"""Which CPU each thread runs on.

compact  fills one L3 domain after the other        domain  uses one L3 domain
spread   deals threads out over sockets, nodes,     node    uses one NUMA node
         domains in turn                            socket  uses one socket

The name of a node (node0) or of a kind of cores means its CPUs only. For every word, each physical
core gets a thread before an SMT sibling gets one, and strong cores come before weak ones.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise, zip_longest

from kvbench.errors import BadArgument, Unsupported
from kvbench.grouping import grouped
from kvbench.machine.cpus import last_levels
from kvbench.model import PLACES, Cpu, Machine
from kvbench.model.chases import NODE, SIBLING
from kvbench.units import cpu_text

MOST_THREADS = 1024
UNITS = ("domain", "node", "socket")  # as `threads`: as many as one unit has cores
SIBLINGS, POWERS = "all+smt", "powers"  # one thread per CPU; a series of thread numbers
_NUMBER = "[0-9]{1,18}"  # longer numbers cannot be a CPU or a thread count
_RANGE = re.compile(f"({_NUMBER})(?:-({_NUMBER}))?")


def place(machine: Machine, cpus: str | None, threads: str | int | None) -> tuple[int, ...]:
    """Choose one CPU for each thread. `cpus` is a word, or a list that is used in its order; by
    default compact.

    Without `threads`: one for each physical core (for a list: each CPU), and no more than the quota
    pays for. More threads than CPUs begin again at the first CPU. threads = domain, node or socket:
    as many as one unit has cores, placed on one unit unless `cpus` says otherwise.
    """
    threads = "domain" if threads == "ccx" else threads
    if threads in UNITS:
        if cpus not in (None, "compact", "spread"):
            raise BadArgument(f"threads = {threads} already says which CPUs", "leave cpus out")
        own = place(machine, str(threads), "all")
        return place(machine, cpus, len(own)) if cpus == "spread" else own
    order, cores = _order(machine, cpus)
    count = _count(threads)
    if count is None:
        count = max(1, paid(machine, len(order) if threads == SIBLINGS else cores))
    return tuple(order[thread % len(order)] for thread in range(count))


def powers(machine: Machine, cpus: str | None) -> tuple[int, ...]:
    """Thread counts for a scaling curve, at most one thread per core: powers of two within a
    domain, then whole domains, nodes and sockets, then all. With spread, sockets come first. Strong
    cores come first, and their number is in the series.
    """
    order, cores = _order(machine, cpus)
    first = [cpu for cpu, rank in _ranks(machine, order).items() if not rank]
    home, known = _domains(machine), {cpu.cpu: cpu for cpu in machine.cpus}
    groups = [
        [known[cpu].socket for cpu in first],
        [known[cpu].node for cpu in first],
        [home[cpu] for cpu in first],
    ]
    steps = [max(Counter(each).values()) for each in reversed(groups)]
    if cpus == "spread":
        steps = [len(set(each)) for each in groups]
    most = max(1, paid(machine, cores))
    found = {most}
    for unit, limit in pairwise((1, *steps, cores)):
        found |= {unit << bit for bit in range((limit // unit).bit_length())} | {limit}
    kinds = [known[cpu].kind for cpu in first]
    strong = kinds.count(kinds[0])
    return tuple(
        sorted(count for count in found | {strong} if count <= min(strong, most) or count == most)
    )


def neighbours(machine: Machine, cpus: Iterable[int]) -> tuple[int, ...]:
    """One CPU of each core that `cpus` leave free on their nodes, as many as the quota pays for."""
    own = set(cpus)
    first = _free(machine, own, NODE)
    return tuple(first[: max(0, paid(machine, len(own) + len(first)) - len(own))])


def chaser(machine: Machine, cpus: Iterable[int], where: str) -> int | None:
    """The CPU of a thread that chases pointers beside a point on `cpus`; None if no CPU is free
    there, or the quota does not pay for one more. where: as in model/chases.py. It is the last of
    the strongest free CPUs, because the first CPUs serve interrupts.
    """
    own = set(cpus)
    free = _free(machine, own, where)
    return _last(machine, free) if free and paid(machine, len(own) + 1) > len(own) else None


def loading(machine: Machine, cpus: str | None, where: str) -> tuple[int, ...]:
    """The CPUs of a point with a chase if no thread count is given: one for each core of the first
    node that place() takes, except the core of the chase, and no more than the quota pays for. A
    list of CPUs is used as it is. Empty if no CPU is left.
    """
    order, cores = _order(machine, cpus)
    if not _is_word(machine, cpus):
        return order[: paid(machine, cores)]
    node = {cpu.cpu: cpu.node for cpu in machine.cpus}
    ranks = _ranks(machine, order)
    own = [cpu for cpu in order if not ranks[cpu] and node[cpu] == node[order[0]]]
    if where == NODE and not _free(machine, set(own), where):
        own.remove(_last(machine, own))
    return tuple(own[: max(0, paid(machine, len(own) + 1) - 1)])


def _free(machine: Machine, own: Collection[int], where: str) -> list[int]:
    """CPUs that may chase beside `own`, strong ones first: one CPU of each free core on the nodes
    of `own`, or for REMOTE on the first other node. For SIBLING: the free CPUs of busy cores.
    """
    known, order = {cpu.cpu: cpu for cpu in machine.cpus}, _ordered(machine, "compact")
    busy, nodes = {known[cpu].core for cpu in own}, {known[cpu].node for cpu in own}
    if where == SIBLING:
        return [cpu for cpu in order if known[cpu].core in busy and cpu not in own]
    idle = [cpu for cpu in order if known[cpu].core not in busy]
    first = [cpu for cpu, rank in _ranks(machine, idle).items() if not rank]
    if where != NODE:
        nodes = {known[cpu].node for cpu in first if known[cpu].node not in nodes}
        nodes = {min(nodes)} if nodes else set()
    return [cpu for cpu in first if known[cpu].node in nodes]


def _last(machine: Machine, cpus: Sequence[int]) -> int:
    """The last CPU that is as strong as the first."""
    kind = {cpu.cpu: cpu.kind for cpu in machine.cpus}
    return [cpu for cpu in cpus if kind[cpu] == kind[cpus[0]]][-1]


def _count(threads: str | int | None) -> int | None:
    if threads in (None, "all", SIBLINGS):
        return None
    text = str(threads)
    if not re.fullmatch(_NUMBER, text) or not 1 <= int(text) <= MOST_THREADS:
        allowed = ", ".join((*UNITS, "all", SIBLINGS))
        raise BadArgument(
            f"--threads is {text[:60]!r}",
            f"a number from 1 to {MOST_THREADS}, or one of: {allowed}",
        )
    return int(text)


def paid(machine: Machine, threads: int) -> int:
    """The number of threads, cut so that none waits for the quota. At a barrier a paused thread
    would hold up all others.
    """
    quota = machine.facts["quota"].value
    return min(threads, math.floor(quota)) if isinstance(quota, int | float) else threads


def _order(machine: Machine, cpus: str | None) -> tuple[tuple[int, ...], int]:
    """The CPUs that a word or a list means, and how many threads fit without sharing a core (for a
    list: its CPUs).
    """
    if _is_word(machine, cpus):
        order = _ordered(machine, cpus or "compact")
        return order, sum(not rank for rank in _ranks(machine, order).values())
    order = _listed(machine, cpus or "")
    return order, len(order)


def _is_word(machine: Machine, cpus: str | None) -> bool:
    """Whether `cpus` is a word, not a list. None means compact."""
    return cpus is None or cpus in (*PLACES, *words_of(machine))


def words_of(machine: Machine) -> tuple[str, ...]:
    """The words for CPUs that only this machine has: its nodes, and its kinds of cores if there are
    several.
    """
    allowed = [cpu for cpu in machine.cpus if cpu.cpu in machine.allowed]
    kinds = tuple(dict.fromkeys(cpu.kind for cpu in allowed))
    nodes = dict.fromkeys(f"node{cpu.node}" for cpu in allowed)
    return (*nodes, *(kinds if len(kinds) > 1 else ()))


def memory_nodes(machine: Machine) -> list[int]:
    """NUMA nodes that have memory, or whose size is unknown."""
    return [node.node for node in machine.nodes if node.bytes != 0]


def _listed(machine: Machine, text: str) -> tuple[int, ...]:
    """The CPUs of a list, in the order given."""
    allowed, found = set(machine.allowed), dict[int, None]()
    for part in map(str.strip, text.split(",")):
        ends = _RANGE.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if first > last:
            known = ", ".join((*PLACES, *words_of(machine)))
            raise BadArgument(
                f"--cpus: {part[:60]!r} is not known", f"a list such as 0-3,8, or one of: {known}"
            )
        for cpu in range(first, last + 1):
            if cpu not in allowed:
                online = any(cpu == one.cpu for one in machine.cpus)
                why = "not allowed to this process" if online else "not online"
                raise BadArgument(f"--cpus: CPU {cpu} is {why}", f"allowed: {cpu_text(allowed)}")
            if cpu in found:
                raise BadArgument(f"--cpus names CPU {cpu} twice", "each CPU once")
            found[cpu] = None
    return tuple(found)


def _ordered(machine: Machine, word: str) -> tuple[int, ...]:
    """The allowed CPUs that a word means, in the order in which threads take them."""
    home = _domains(machine)
    allowed = [cpu for cpu in machine.cpus if cpu.cpu in machine.allowed]
    levels: tuple[Callable[[Cpu], int], ...] = (
        lambda cpu: cpu.socket,
        lambda cpu: cpu.node,
        lambda cpu: home[cpu.cpu],
    )
    if word == "domain" and not machine.caches:
        raise Unsupported(
            "--cpus: no cache is declared, so this machine has no domains", "use node or socket"
        )
    if word not in PLACES:
        allowed = [cpu for cpu in allowed if word in (cpu.kind, f"node{cpu.node}")]
    if word in UNITS:
        level = levels[("socket", "node", "domain").index(word)]
        allowed = max(_groups(allowed, level), key=lambda group: len({cpu.core for cpu in group}))
    known = machine.facts["core_kinds"].value
    kinds = list(known) if isinstance(known, dict) else []
    allowed.sort(key=lambda cpu: (*(level(cpu) for level in levels), cpu.cpu))
    ranks = _ranks(machine, [cpu.cpu for cpu in allowed])
    turns = grouped(
        ((ranks[cpu.cpu], kinds.index(cpu.kind) if cpu.kind in kinds else 0), cpu)
        for cpu in allowed
    )
    deal = levels if word == "spread" else ()
    return tuple(chain.from_iterable(_dealt(turns[turn], deal) for turn in sorted(turns)))


def _domains(machine: Machine) -> dict[int, int]:
    """The lowest CPU of each CPU's domain; CPUs without any cache are in a domain together."""
    home = dict.fromkeys((cpu.cpu for cpu in machine.cpus), -1)
    for cache in last_levels(machine.caches):
        home.update(dict.fromkeys(cache.cpus, min(cache.cpus)))
    return home


def _ranks(machine: Machine, order: Iterable[int]) -> dict[int, int]:
    """Each CPU's rank in its core by this order: 0 for the first, 1 for the next. The lowest CPU of
    a core may not be allowed.
    """
    core, seen, ranks = {cpu.cpu: cpu.core for cpu in machine.cpus}, dict[int, int](), {}
    for cpu in order:
        ranks[cpu] = seen.get(core[cpu], 0)
        seen[core[cpu]] = ranks[cpu] + 1
    return ranks


def _groups(cpus: list[Cpu], level: Callable[[Cpu], int]) -> list[list[Cpu]]:
    return list(grouped((level(cpu), cpu) for cpu in cpus).values())


def _dealt(cpus: list[Cpu], levels: tuple[Callable[[Cpu], int], ...]) -> Iterator[int]:
    """Take one CPU of each socket in turn; within a socket, one of each node; within a node, one of
    each domain.
    """
    if not levels:
        return iter([cpu.cpu for cpu in cpus])
    hands = [_dealt(group, levels[1:]) for group in _groups(cpus, levels[0])]
    return (cpu for cpu in chain.from_iterable(zip_longest(*hands)) if cpu is not None)
