"""A machine that the preflight has nothing against: its files, and what is observed on it while it
runs.
"""

from collections import Counter

from kvbench.machine.preflight import Live
from tests.machine.trees import put
from tests.made_run import MIB

CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
THP = "/sys/kernel/mm/transparent_hugepage"
CPU = "/sys/devices/system/cpu"
IDLE = "cpu0 0 0 0 {0} 0 0 0 0 0 0\ncpu1 0 0 0 {0} 0 0 0 0 0 0\nprocs_running 1\n"

HEALTHY = {
    "/proc/stat": IDLE.format(0),
    "/proc/meminfo": "MemTotal: 8388608 kB\nMemFree: 8388608 kB\nMemAvailable: 8388608 kB\n",
    "/sys/fs/cgroup/cpu.max": "max 100000\n",
    "/proc/sys/kernel/numa_balancing": "0\n",
    f"{THP}/enabled": "always [madvise] never\n",
    f"{THP}/hpage_pmd_size": "2097152\n",
    CLOCKSOURCE: "tsc\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    **{
        f"{CPU}/cpu{cpu}/cpufreq/{name}": f"{value}\n"
        for cpu in (0, 1)
        for name, value in {
            "scaling_governor": "performance",
            "scaling_driver": "intel_pstate",
            "cpuinfo_max_freq": 3800000,
            "scaling_cur_freq": 3000000,
            "base_frequency": 2600000,
        }.items()
    },
}


class Still(Live):
    """Answers that a test gives. `quiet` and `busy` are written as the files that change in such a
    time.
    """

    def __init__(
        self,
        root,
        huge=1.0,
        pages=(16,),
        rounds=((3.0, 3.0),) * 4,
        quiet=None,
        busy=None,
        error=None,
    ):
        self.root, self.huge, self.rounds, self.error = root, huge, rounds, error
        self.pages = Counter(dict(enumerate(pages)))
        self.quiet = {"/proc/stat": IDLE.format(20)} if quiet is None else quiet
        self.busy = (
            {"/proc/stat": "cpu0 40 0 0 0 0 0 0 0\ncpu1 40 0 0 20 0 0 0 0\n"}
            if busy is None
            else busy
        )

    def sleep(self, seconds):
        put(self.root, self.quiet)

    def touched(self, size, cpus):
        if self.error:
            raise self.error
        memory = {
            "page_bytes": 2 * MIB,
            "resident_bytes": size,
            "huge_bytes": int(self.huge * size),
            "mapped": size,
        }
        return memory, self.pages

    def clock(self, cpus):
        if self.error:
            raise self.error
        put(self.root, self.busy)
        return [tuple(round_[: len(cpus)]) for round_ in self.rounds]
