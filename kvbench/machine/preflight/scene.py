"""What the checks observe, and how an observation becomes a check. Slow observations are made once,
when a check first asks for them.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from statistics import fmean
from typing import Any

from kvbench.errors import KvbenchError, Refused, Unsupported
from kvbench.machine.allowance import available_memory
from kvbench.machine.tree import Files
from kvbench.model import Check, Machine
from kvbench.native import Arena, Team, default_library, numa, probe_task
from kvbench.units import MIB, cpu_text, size

# Seconds of watching while this process sleeps: 20 of the kernel's usual ticks on each CPU.
_QUIET_SECONDS = 0.2
_LOOKS = 5  # how often the number of runnable tasks is read in that time
_WARM_SECONDS = 0.05  # long enough for a governor that follows the load
_CLOCK_ROUNDS = 12
_CLOCK_SECONDS = 0.02  # of a round: two of the kernel's ticks
# Bytes of the test arena: enough pages for a share, touched in some 20 ms.
_ARENA_BYTES = 64 * MIB
_ARENA_SHARE = 0.25  # of the available memory at most
_ADDITIONS = 1 << 20  # in a pass: some 0.3 ms
# Indexes in a line of /proc/stat. Later columns are already counted in these.
_IDLE, _WAIT, _STEAL, _TIMES = 3, 4, 7, 8
_THP_USUAL = 2 * MIB


class Live:
    """The running system. Its methods use memory and time, and leave no setting changed."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def touched(self, size: int, cpus: Sequence[int]) -> tuple[dict[str, int], Counter[int]]:
        """Touch an arena first by a thread on each of `cpus`. Return what inspect() says, and the
        nodes of a sample of its pages.
        """
        _refuse_absent(cpus)
        library = default_library()
        with Team(len(cpus), cpus, library) as team, Arena(size, "thp", library=library) as arena:
            with probe_task(
                library, "write", len(cpus), isa=library.isas()[0], to=arena, size=size
            ) as task:
                team.run(task)
            try:
                return arena.inspect(), numa.placed(arena, arena.size)
            except Unsupported:  # as in some containers
                return arena.inspect(), Counter()

    def clock(self, cpus: Sequence[int]) -> list[tuple[float, ...]]:
        """GHz of each of `cpus` with all under load, one tuple a round."""
        _refuse_absent(cpus)
        library = default_library()
        with (
            Team(len(cpus), cpus, library) as team,
            probe_task(library, "clock", len(cpus), isa=library.isa(), steps=_ADDITIONS) as task,
        ):
            pass_seconds = team.run(task, passes=4).seconds / 4
            team.run(task, passes=max(1, round(_WARM_SECONDS / pass_seconds)))
            passes = max(1, round(_CLOCK_SECONDS / pass_seconds))
            rounds = [team.run(task, passes=passes).thread_seconds for _ in range(_CLOCK_ROUNDS)]
        return [
            tuple(passes * _ADDITIONS / seconds / 1e9 for seconds in round_) for round_ in rounds
        ]


def _refuse_absent(cpus: Sequence[int]) -> None:
    """Refuse CPUs that only a made-up tree has."""
    if absent := set(cpus) - os.sched_getaffinity(0):
        raise Refused(
            f"CPUs {cpu_text(absent)} do not exist here", "run doctor on the machine itself"
        )


class Scene:
    """What the checks may ask. `cpus`: one for each thread; they may be fewer than
    `machine.allowed`.
    """

    def __init__(self, files: Files, machine: Machine, cpus: Sequence[int], live: Live) -> None:
        self.files, self.machine, self.live = files, machine, live
        self.cpus = tuple(cpus)

    def fact(self, name: str) -> Any:
        found = self.machine.facts.get(name)
        if found is None or found.value is None:
            raise LookupError(found.note if found and found.note else f"{name} is not known")
        return found.value

    def read(self, path: str) -> str:
        text = self.files.text(path)
        if not text:
            raise LookupError(f"{path} is missing, empty or may not be read")
        return text

    def per_cpu(self, path: str) -> dict[int, str]:
        """The text of a file below each allowed CPU's sysfs folder; CPUs without the file are left
        out.
        """
        texts = {
            cpu: self.files.text(f"/sys/devices/system/cpu/cpu{cpu}/{path}")
            for cpu in self.machine.allowed
        }
        return {cpu: text for cpu, text in texts.items() if text}

    # ---- observed --------------------------------------------------------------------------------

    def asleep(self) -> tuple[float, float]:
        """Measure while this process sleeps: the busy share of the CPUs' time, and the mean number
        of runnable tasks.
        """
        before, runnable = self._times(), []
        for _ in range(_LOOKS):
            self.live.sleep(_QUIET_SECONDS / _LOOKS)
            runnable.append(self.files.table("/proc/stat").get("procs_running", 1) - 1)
        return busy_and_stolen(before, self._times())[0], fmean(runnable)

    @cached_property
    def loaded(self) -> tuple[list[tuple[float, ...]], list[int], list[int]]:
        """Measure with all threads at work: GHz by round and thread; the ticks before and after."""
        before = self._times()
        return self.live.clock(self.cpus), before, self._times()

    @cached_property
    def touched(self) -> tuple[dict[str, int], Counter[int]]:
        """live.touched() of an arena that fits the available memory."""
        page = self.files.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") or _THP_USUAL
        wanted, available = max(_ARENA_BYTES, page), available_memory(self.files)
        if wanted > available * _ARENA_SHARE:
            raise LookupError(
                f"{size(available)}  of memory are available; the test needs {size(wanted)}"
            )
        return self.live.touched(wanted, self.cpus)

    def _times(self) -> list[int]:
        """Ticks by kind, of all allowed CPUs together; empty if the system does not say."""
        names = {f"cpu{cpu}" for cpu in self.machine.allowed}
        lines = [line.split() for line in (self.files.text("/proc/stat") or "").splitlines()]
        rows = [line[1 : _TIMES + 1] for line in lines if line and line[0] in names]
        try:
            return [sum(map(int, column)) for column in zip(*rows, strict=False)]
        except ValueError:
            return []


def busy_and_stolen(before: list[int], after: list[int]) -> tuple[float, float | None]:
    """The busy and the stolen share of the CPUs' time between two readings of /proc/stat. None: the
    kernel does not count steal.
    """
    spent = [max(0, late - early) for early, late in zip(before, after, strict=False)]
    total = sum(spent)
    if not total:
        raise LookupError("/proc/stat is missing, not understood or does not advance")
    idle = sum(spent[_IDLE : _WAIT + 1])
    return 1 - idle / total, spent[_STEAL] / total if len(spent) > _STEAL else None


# ---- checks --------------------------------------------------------------------------------------

# status, value and advice of a check; if the status is unknown, the value says why
Finding = tuple[str, str, str]


def ok(value: str) -> Finding:
    return "ok", value, ""


def warn(value: str, advice: str) -> Finding:
    return "warn", value, advice


def judged(fine: bool, value: str, advice: str) -> Finding:
    return ok(value) if fine else warn(value, advice)


def unknown(reason: str, advice: str = "") -> Finding:
    return "unknown", reason, advice


def check(name: str, why: str) -> Callable[[Callable[[Scene], Finding]], Callable[[Scene], Check]]:
    """Turn a function into a check. If the function does not find, may not try or does not
    understand something, the check is unknown, with a reason in plain words.
    """

    def named(look: Callable[[Scene], Finding]) -> Callable[[Scene], Check]:
        @wraps(look)
        def checked(scene: Scene) -> Check:
            try:
                status, value, advice = look(scene)
            except KvbenchError as error:
                status, value, advice = unknown(error.args[0], error.hint)
            except OSError as error:
                status, value, advice = unknown(
                    f"the system does not allow it: {error.strerror or error}"
                )
            except (ValueError, IndexError, KeyError):
                status, value, advice = unknown("the system's answer is not understood")
            except LookupError as error:
                status, value, advice = unknown(str(error))
            return Check(name, status, value, why, advice)

        return checked

    return named
