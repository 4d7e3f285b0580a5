"""Points with a pointer chase beside them: their CPUs, and which points cannot have a chase."""

from kvbench.machine.placement import paid
from kvbench.model import DEFAULTS, OURS, Machine, Needs, Point
from kvbench.model.chases import NODE, NONE, REMOTE, SIBLING
from kvbench.plan.shapes import CPUS, INVALID, NO_NODE, Facts, Left
from kvbench.plan.site import Site
from kvbench.units import counted

NO_SIBLING = "no SMT sibling"
_OPS = ("decode", "append")
_LACKS = {
    NODE: "no core of their NUMA node",
    REMOTE: "no core of another NUMA node",
    SIBLING: "no SMT sibling of their cores",
}


def unchased(point: Point, needed: Needs) -> str:
    """Why no thread can chase beside the point; "" if one can."""
    if point.op not in _OPS:
        return f"a chase runs beside {' or '.join(_OPS)}, not beside {point.op}"
    if point.engine != OURS:
        return "a chase runs beside our kernels, not beside a peer's"
    if point.residency != DEFAULTS["residency"]:
        return f"a chase needs residency {DEFAULTS['residency']}, not {point.residency}"
    if point.between:
        return "a chase allows no reads between passes: ask for between=0"
    if needed.walked < needed.far:  # so few bytes may stay in caches
        layers = counted(needed.slices, "layer")
        return f"a chase runs beside reads from memory, but {layers} in turn may stay in caches"
    return ""


def refuse_unchased(point: Point, needed: Needs) -> None:
    if point.chase != NONE and (why := unchased(point, needed)):
        raise Left(INVALID, why)


def loading(facts: Facts, site: Site) -> tuple[int, ...]:
    """The point's CPUs when a thread chases beside it: the CPUs that were asked for, or all CPUs
    but those that the chase needs.
    """
    where, threads, asked = facts["chase"], facts["threads"], facts["cpus"]
    usual = threads == DEFAULTS["threads"]
    cpus = site.loading(asked, where) if usual else site.cpus(asked, threads)
    if not cpus or site.chaser(cpus, where) is None:
        raise Left(*_lacking(site.machine, len(cpus) or 1, where))
    return cpus


def _lacking(machine: Machine, threads: int, where: str) -> tuple[str, str]:
    """The kind of reason and the reason why no CPU can chase beside so many threads."""
    own = [cpu for cpu in machine.cpus if cpu.cpu in machine.allowed]
    if len(own) < 2:
        return CPUS, f"a chase takes a CPU of its own, but {counted(len(own), 'CPU')} is allowed"
    if where == REMOTE and len({cpu.node for cpu in own}) < 2:
        return NO_NODE, "a chase on another NUMA node needs two nodes, but all CPUs belong to one"
    if where == SIBLING and len({cpu.core for cpu in own}) == len(own):
        return NO_SIBLING, "a chase on an SMT sibling needs SMT, but each CPU is a core of its own"
    if (least := paid(machine, threads + 1)) <= threads:
        what = f"a chase beside {counted(threads, 'thread')} takes {threads + 1} CPUs"
        return CPUS, f"{what}, but the quota allows {least}"
    return CPUS, f"with {counted(threads, 'thread')}, {_LACKS[where]} is free for a chase"
