"""Made-up /sys and /proc. `grow` writes a tree from a short description; the functions below it
describe machines.
"""

from pathlib import Path

from kvbench.machine.tree import Files

CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"
SERVER = [
    (1, "Data", "32K", 1),
    (1, "Instruction", "32K", 1),
    (2, "Unified", "1024K", 1),
    (3, "Unified", "32768K", 8),
]
NEOVERSE = ("0x41", "0xd0c")  # implementer and part


class Live(Files):
    """A made-up tree that passes for the running system."""

    live = True


def put(root: Path, files: dict[str, object]) -> Files:
    for path, text in files.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(f"{text}\n")
    return Files(root)


def text(cpus) -> str:
    return ",".join(map(str, sorted(cpus)))


def grow(
    root: Path,
    sockets: int = 1,
    cores: int = 8,  # of a socket
    smt: int = 1,
    caches=SERVER,  # (level, type, size, cores that share it)
    nodes: list[list[int]] | None = None,  # CPUs of each; one node for each socket unless given
    memory: list[int] | None = None,  # GiB of each node
    offline: frozenset[int] = frozenset(),
    allowed: str | None = None,
    brand: str | None = "Test CPU",
    arm: tuple[str, str] | None = None,
    flags: str = "fpu avx2",
    more: dict[str, object] | None = None,
) -> Files:
    """Siblings are numbered as Linux does: all cores' first threads, then all cores' second
    threads.
    """
    total = sockets * cores
    threads = {core: [core + total * thread for thread in range(smt)] for core in range(total)}
    online = [cpu for cpu in range(total * smt) if cpu not in offline]

    def of_cores(wanted) -> list[int]:
        return [cpu for core in wanted for cpu in threads[core] if cpu in online]

    files: dict[str, object] = {
        f"{CPU}/online": text(online),
        "proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 1048576 kB",
    }
    files |= {
        "proc/sys/kernel/arch": "aarch64" if arm else "x86_64",
        "proc/sys/kernel/osrelease": "6.1.0-test",
    }
    blocks = []
    for cpu in online:
        core = cpu % total
        place = f"{CPU}/cpu{cpu}/topology"
        files |= {
            f"{place}/core_cpus_list": text(of_cores([core])),
            f"{place}/physical_package_id": core // cores,
        }
        for index, (level, kind, size, sharers) in enumerate(caches):
            first = core - core % sharers
            shared = of_cores(range(first, min(first + sharers, total)))
            facts = {
                "level": level,
                "type": kind,
                "size": size,
                "coherency_line_size": 64,
                "shared_cpu_list": text(shared),
            }
            files |= {
                f"{CPU}/cpu{cpu}/cache/index{index}/{name}": value for name, value in facts.items()
            }
        blocks.append(_cpuinfo(cpu, brand, arm, flags))
    files["proc/cpuinfo"] = "\n\n".join(blocks)
    for number, cpus in enumerate(
        nodes or [of_cores(range(s * cores, (s + 1) * cores)) for s in range(sockets)]
    ):
        kib = ((memory or [])[number : number + 1] or [32])[0] << 20
        files |= {
            f"{NODE}/node{number}/cpulist": text(cpus),
            f"{NODE}/node{number}/meminfo": f"Node {number} MemTotal: {kib} kB",
        }
    if allowed is not None:
        files["proc/self/status"] = f"Name:\tpython\nCpus_allowed_list:\t{allowed}"
    else:
        files["proc/self/status"] = f"Cpus_allowed_list:\t{text(online)}"
    return put(root, files | (more or {}))


def _cpuinfo(cpu, brand, arm, flags) -> str:
    lines = {"processor": cpu}
    if arm:
        lines |= {
            "BogoMIPS": "50.00",
            "CPU implementer": arm[0],
            "CPU variant": "0x3",
            "CPU part": arm[1],
        }
    else:
        lines |= {
            "vendor_id": "TestVendor",
            "flags": flags,
            "cpu MHz": 2000 + cpu,
            "microcode": "0x1",
        }
    if brand:
        lines["model name"] = brand
    return "\n".join(f"{name}\t: {value}" for name, value in lines.items())


def zen4(root, **more):
    """16 cores with two threads each, in two domains of 32 MiB."""
    return grow(root, cores=16, smt=2, **more)


def hybrid(root):
    """Four cores with 48 KiB and a private L2, and four small ones that share an L2; one L3 over
    all.
    """
    big = [(1, "Data", "48K", 1), (2, "Unified", "2048K", 1), (3, "Unified", "36864K", 8)]
    small = {}
    for cpu in range(4, 8):
        for index, (size, shared) in enumerate((("32K", str(cpu)), ("4096K", "4-7"))):
            small |= {
                f"{CPU}/cpu{cpu}/cache/index{index}/{name}": value
                for name, value in (("size", size), ("shared_cpu_list", shared))
            }
    return grow(
        root,
        caches=big,
        more=small | {"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"},
    )


def snc4(root):
    """Two sockets of 8 cores, four nodes in each; the L3 is declared over the whole socket, as such
    firmware does.
    """
    return grow(root, sockets=2, nodes=[[cpu, cpu + 1] for cpu in range(0, 16, 2)])


def graviton(root):
    """64 cores that bear no name, 1 MiB of L2 each, 32 MiB of L3, under a hypervisor."""
    caches = [(1, "Data", "64K", 1), (2, "Unified", "1024K", 1), (3, "Unified", "32768K", 64)]
    dmi = {
        "sys/class/dmi/id/sys_vendor": "Amazon EC2",
        "sys/class/dmi/id/product_name": "m6g.16xlarge",
    }
    return grow(root, cores=64, caches=caches, brand=None, arm=NEOVERSE, more=dmi)


def apple(root):
    """Four small cores and four large; each four share an L2, and there is no L3. Pages of 16
    KiB.
    """
    caches = [(1, "Data", "64K", 1), (2, "Unified", "4096K", 4)]
    more = {
        f"{CPU}/cpu{cpu}/regs/identification/midr_el1": "0x00000000611f0220" for cpu in range(4)
    }
    for cpu in range(4, 8):
        more[f"{CPU}/cpu{cpu}/regs/identification/midr_el1"] = "0x00000000611f0230"
        more |= {
            f"{CPU}/cpu{cpu}/cache/index0/size": "128K",
            f"{CPU}/cpu{cpu}/cache/index1/size": "12288K",
        }
    more |= {f"{CPU}/cpu{cpu}/cpu_capacity": 400 if cpu < 4 else 1024 for cpu in range(8)}
    more |= {"proc/self/smaps": "0-1 rw-p\nKernelPageSize:       16 kB"}
    return grow(root, caches=caches, brand=None, arm=("0x61", "0x022"), more=more)


def merged_l3(root):
    """A virtual machine whose one L3 spans both its sockets."""
    return grow(root, sockets=2, cores=4, flags="fpu hypervisor")


def bare_guest(root, **more):
    """A virtual machine that declares no cache at all."""
    return grow(root, cores=4, caches=[], flags="fpu hypervisor", **more)


def grace_hopper(root):
    """72 cores in one node, and eight nodes of the GPU's memory, of which one has any."""
    caches = [(1, "Data", "64K", 1), (2, "Unified", "1024K", 1), (3, "Unified", "116736K", 72)]
    nodes = [list(range(72)), *[[] for _ in range(8)]]
    return grow(
        root,
        cores=72,
        caches=caches,
        nodes=nodes,
        memory=[480, 96, *[0] * 7],
        brand=None,
        arm=("0x41", "0xd4f"),
    )
