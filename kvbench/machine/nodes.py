"""NUMA nodes."""

from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files, count
from kvbench.model import Cpu, Node

_SYSFS = "/sys/devices/system/node"


def numa_nodes(files: Files, online: tuple[int, ...]) -> tuple[Node, ...]:
    """Every node, those without CPUs too; empty where the kernel does not show each CPU on one."""
    found = []
    for number in shown_nodes(files):
        cpus = read_list(files, f"{_SYSFS}/node{number}/cpulist") & set(online)
        found.append(Node(number, tuple(sorted(cpus)), node_memory(files, number).get("MemTotal")))
    placed = {cpu for node in found for cpu in node.cpus}
    return tuple(found) if placed == set(online) else ()


def shown_nodes(files: Files) -> list[int]:
    numbers = (count(folder.rpartition("/node")[2]) for folder in files.glob(f"{_SYSFS}/node[0-9]*"))
    return [number for number in numbers if number is not None]


def node_memory(files: Files, node: int) -> dict[str, int]:
    """Bytes by name, of lines such as "Node 0 MemTotal:  16384 kB"."""
    return {name: kib << 10 for name, kib in files.table(f"{_SYSFS}/node{node}/meminfo", skip=2).items()}


def nodes_per_socket(cpus: tuple[Cpu, ...]) -> int:
    """More than one: sub-NUMA clusters (SNC) or nodes per socket (NPS) are switched on."""
    nodes: dict[int, set[int]] = {}
    for cpu in cpus:
        nodes.setdefault(cpu.socket, set()).add(cpu.node)
    return max(map(len, nodes.values()))
