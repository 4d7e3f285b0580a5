"""Tasks: ops on given arguments, checked and planned once. Teams: persistent threads that run tasks
as often as wanted.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

from kvbench.errors import BadArgument, Unsupported
from kvbench.model import Times, Traffic
from kvbench.native.arguments import instance, place, real, whole
from kvbench.native.library import Library, Owned, default_library
from kvbench.units import gbps


class Task(Owned):
    """An op with its arguments. `make`: one of the library's kvb_task_… functions, called with
    `args` and a place for the new task.

    `keep` holds all C memory that the task reaches (structs, arrays, arenas) as long as the task
    lives.
    """

    _hint = "make another one"

    def __init__(self, library: Library, make: Any, *args: Any, keep: tuple[Any, ...] = ()) -> None:
        made = library.ffi.new("kvb_task **")
        library.check(make(*args, made))
        super().__init__(library, made[0], "kvb_task_free")
        self._keep = (*args, *keep)

    def close(self) -> None:
        super().close()
        self._keep = ()

    def sum(self) -> int:
        """The sum of what a twin or a read probe has loaded so far."""
        found = self.library.ffi.new("uint32_t *")
        self.library.check(self.library.lib.kvb_task_sum(self.pointer, found))
        return int(found[0])

    def traffic(self) -> Traffic:
        """Bytes and operations of one pass."""
        traffic = self.library.ffi.new("kvb_traffic *")
        self.library.check(self.library.lib.kvb_task_traffic(self.pointer, traffic))
        named = ((name, name.removeprefix("bytes_")) for name in Traffic.__dataclass_fields__)
        return Traffic(**{name: getattr(traffic, own) for name, own in named})


def _one_library(task: Task, library: Library) -> None:
    if task.library is not library:
        raise BadArgument("a task belongs to another library", "make both with one Library")


class Series(Task):
    """Several tasks done one after another as one pass. `kinds`: for each task, the index of its
    time in Times.stage_share, 0 to 2. A task may occur several times.
    """

    def __init__(
        self, library: Library, tasks: Sequence[Task], kinds: Sequence[int], threads: int
    ) -> None:
        self.tasks, ffi = tuple(tasks), library.ffi
        if not library.takes_series:
            name = library.path.name
            raise Unsupported(f"{name} is too old for whole steps", "leave out points of op step")
        for task in self.tasks:
            _one_library(task, library)
        if len(kinds) != len(self.tasks):
            raise BadArgument(
                f"{len(kinds)} kinds for {len(self.tasks)} tasks", "name one kind for each task"
            )
        pointers = ffi.new("kvb_task *[]", [task.pointer for task in self.tasks])
        own = ffi.new("int32_t[]", [whole("a kind", kind, 32) for kind in kinds])
        args = pointers, own, len(self.tasks), whole("threads", threads, 32)
        super().__init__(library, library.lib.kvb_task_series, *args)

    def refuse_closed(self) -> None:
        """Refuse a series with a closed task: the library reaches every task of an open series."""
        for task in self.tasks:
            _ = task.pointer


@dataclass(frozen=True, slots=True)
class Load:
    """What a team does while another team runs: passes over its tasks, round robin. It does `ahead`
    passes before that run begins. pause: after a unit of work a thread waits this many times as
    long as the unit took.
    """

    team: "Team"
    tasks: tuple[Task, ...]
    ahead: int = 1
    pause: float = 0.0

    def gbps(self, times: Times) -> float:
        """GB/s that the load moved while `times` were taken. All its tasks move equally many
        bytes.
        """
        moved = self.tasks[0].traffic().bytes_compulsory
        return gbps(moved * times.load_passes, times.load_seconds)


class Team(Owned):
    """`threads` persistent threads; thread i is pinned to cpus[i] if cpus are given. They sleep if
    nothing runs.
    """

    def __init__(
        self, threads: int, cpus: Sequence[int] | None = None, library: Library | None = None
    ) -> None:
        library = default_library() if library is None else instance("library", library, Library)
        ffi, threads = library.ffi, whole("threads", threads, 32)
        if cpus is not None and len(instance("cpus", cpus, Collection)) != threads:
            raise BadArgument(
                f"cpus names {len(cpus)} CPUs for {threads} threads", "name one CPU for each thread"
            )
        made = ffi.new("kvb_team **")
        pins = (
            ffi.NULL
            if cpus is None
            else ffi.new("int32_t[]", [whole("cpus", cpu, 32) for cpu in cpus])
        )
        library.check(library.lib.kvb_team_open(pins, threads, made))
        super().__init__(library, made[0], "kvb_team_close")
        self.threads = threads

    def run(
        self,
        *tasks: Task,
        passes: int = 1,
        between: Task | None = None,
        load: Load | None = None,
    ) -> Times:
        """Run `passes` passes, round robin over the tasks, and return their times. `between` runs
        untimed before every pass. load: what another team does meanwhile.
        """
        ffi = self.library.ffi
        for task in tasks if between is None else (*tasks, between):
            self._refuse_foreign(task)
        passes = place("passes", passes, 1 << 31)  # every pass's time is kept
        times = ffi.new("kvb_run_times *")
        pass_seconds = ffi.new("double[]", max(passes, 1))
        thread_seconds = ffi.new("double[]", self.threads)
        times.pass_seconds, times.thread_seconds = pass_seconds, thread_seconds
        pointers = ffi.new("kvb_task *[]", [task.pointer for task in tasks])
        last = between.pointer if between else ffi.NULL
        run = self.pointer, pointers, len(tasks), passes, last, times
        if load is None:
            self.library.check(self.library.lib.kvb_run(*run))
            beside: tuple[Any, ...] = ()
        else:
            beside = self._run_beside(run, instance("load", load, Load))
        share, counts = tuple(times.stage_share), (times.switches, times.faults)
        seconds = times.seconds, tuple(pass_seconds), tuple(thread_seconds)
        return Times(*seconds, share, *counts, *beside)

    def _refuse_foreign(self, task: Task, name: str = "a task, or between,") -> None:
        _one_library(instance(name, task, Task), self.library)
        if isinstance(task, Series):
            task.refuse_closed()

    def _run_beside(self, run: tuple[Any, ...], load: Load) -> tuple[int, float]:
        """Run beside a load; return the load's passes and their seconds."""
        self.library.refuse_no_loads()
        if instance("load: its team", load.team, Team).library is not self.library:
            raise BadArgument(
                "load: its team belongs to another library", "make both with one Library"
            )
        for task in instance("load: tasks", load.tasks, Sequence):
            self._refuse_foreign(task, "load: a task")
        ffi = self.library.ffi
        tasks = ffi.new("kvb_task *[]", [task.pointer for task in load.tasks])
        ahead, pause = whole("load: ahead", load.ahead), real("load: pause", load.pause)
        other = load.team.pointer, tasks, len(load.tasks), ahead, pause, 0, 0
        found = ffi.new("kvb_load *", other)
        self.library.check(self.library.lib.kvb_run_beside(*run, found))
        return found.passes, found.seconds


class Teams:
    """A team for each number of threads, made when first asked for. Hold `lock` while a team works,
    and while memory that teams work on is given back.
    """

    def __init__(self, library: Library) -> None:
        self._library, self._made, self.lock = library, dict[int, Team](), RLock()

    def of(self, threads: int) -> Team:
        if threads not in self._made:
            self._made[threads] = Team(threads, library=self._library)
        return self._made[threads]

    def close(self) -> None:
        while self._made:
            self._made.popitem()[1].close()
