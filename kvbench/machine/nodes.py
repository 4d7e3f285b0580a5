"""NUMA nodes."""

from kvbench.machine.cpus import read_list
from kvbench.machine.files import Files
from kvbench.model import Cpu, Node

_SYSFS = "/sys/devices/system/node"


def numa_nodes(files: Files, online: tuple[int, ...]) -> tuple[Node, ...]:
    """Every node, those without CPUs too; empty where the kernel shows none."""
    found = []
    for folder in files.glob(f"{_SYSFS}/node[0-9]*"):
        number = folder.rpartition("/node")[2]
        cpus = read_list(files, f"{folder}/cpulist") & set(online)
        found.append(Node(int(number), tuple(sorted(cpus)), _total(files.text(f"{folder}/meminfo") or "")))
    return tuple(found)


def _total(meminfo: str) -> int | None:
    """ "Node 0 MemTotal:  16384 kB" """
    for line in meminfo.splitlines():
        words = line.split()
        if "MemTotal:" in words and words[-2].isdigit():
            return int(words[-2]) << 10
    return None


def nodes_per_socket(cpus: tuple[Cpu, ...]) -> int:
    """More than one: sub-NUMA clusters (SNC) or nodes per socket (NPS) are switched on."""
    nodes: dict[int, set[int]] = {}
    for cpu in cpus:
        nodes.setdefault(cpu.socket, set()).add(cpu.node)
    return max(map(len, nodes.values()))
