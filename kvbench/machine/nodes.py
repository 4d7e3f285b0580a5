"""NUMA nodes."""

from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files, count
from kvbench.model import Cpu, Node

_SYSFS = "/sys/devices/system/node"


def numa_nodes(files: Files, online: tuple[int, ...]) -> tuple[Node, ...]:
    """Every node, those without CPUs too; empty where the kernel does not show each CPU on one."""
    found = []
    numbers = (count(folder.rpartition("/node")[2]) for folder in files.glob(f"{_SYSFS}/node[0-9]*"))
    for number in (number for number in numbers if number is not None):
        memory = files.table(f"{_SYSFS}/node{number}/meminfo", skip=2).get("MemTotal")  # "Node 0 MemTotal:  16384 kB"
        cpus = read_list(files, f"{_SYSFS}/node{number}/cpulist") & set(online)
        found.append(Node(number, tuple(sorted(cpus)), None if memory is None else memory << 10))
    placed = {cpu for node in found for cpu in node.cpus}
    return tuple(found) if placed == set(online) else ()


def nodes_per_socket(cpus: tuple[Cpu, ...]) -> int:
    """More than one: sub-NUMA clusters (SNC) or nodes per socket (NPS) are switched on."""
    nodes: dict[int, set[int]] = {}
    for cpu in cpus:
        nodes.setdefault(cpu.socket, set()).add(cpu.node)
    return max(map(len, nodes.values()))
