"""Plants one fault after another: plant, build, check, remove."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutate.faults import Fault
from tests.mutate.tree import Copy, Ended

CAUGHT, MISSED, GONE = "caught", "not caught", "no longer fits"
UNBUILT, UNCHECKED = "does not build", "no sound check"
UNSEEN, NO_TIER = "not to be seen here", "no such tier here"
FINE = (CAUGHT, UNSEEN, NO_TIER)

FIRST_LIMIT = 300  # seconds that a check may take without a fault
# limit with a fault: this many times the time without, and at least this many seconds
SLOWER, LEAST = 4, 60


@dataclass(frozen=True)
class Row:
    """The outcome of one fault. `by`: the check that failed, or the reason if none did."""

    fault: Fault
    outcome: str
    by: str
    seconds: float


@dataclass
class Planting:
    """Plants faults in a copy. `say` takes a line of progress. `logs` keeps the output of failing
    commands.
    """

    copy: Copy
    say: Callable[[str], None]
    logs: Path

    def __post_init__(self) -> None:
        self.times: dict[str, float] = {}  # seconds of the checks that pass without a fault
        self.broken: dict[str, str] = {}  # the other checks, and how they ended

    # ---- without a fault -------------------------------------------------------------------------

    def prepare(self, faults: Iterable[Fault]) -> None:
        """Run each check once on the unchanged copy."""
        checks = list(dict.fromkeys(check for fault in faults for check in fault.checks))
        for count, check in enumerate(checks, 1):
            ended = self.copy.run(self.copy.command(check), FIRST_LIMIT)
            if ended.code == 0:
                self.times[check] = ended.seconds
            else:
                self.broken[check] = _how(ended, FIRST_LIMIT)
                self._keep(f"check {check}", ended)
            word = "passes" if ended.code == 0 else self.broken[check].upper()
            self.say(f"check {count}/{len(checks)} {word} ({ended.seconds:.1f} s): {check}")

    # ---- with one --------------------------------------------------------------------------------

    def rows(self, faults: list[Fault], tiers: Iterable[str]) -> Iterator[Row]:
        """Plant C faults first: Python's then need no build. The file is always restored."""
        ordered = sorted(faults, key=lambda fault: not fault.in_c)
        for count, fault in enumerate(ordered, 1):
            begun = time.monotonic()
            outcome, by = self._of(fault, set(tiers))
            row = Row(fault, outcome, by, time.monotonic() - begun)
            self.say(
                f"fault {count}/{len(ordered)} {outcome} ({row.seconds:.1f} s): {fault.room}:"
                f" {fault.name}"
            )
            yield row

    def _of(self, fault: Fault, tiers: set[str]) -> tuple[str, str]:
        path = self.copy.place / fault.file
        sound_text = path.read_text() if path.is_file() else ""
        text = fault.edited(sound_text)
        if text is None:
            return GONE, f"find stands not exactly once in {fault.file}"
        if fault.why:
            return UNSEEN, fault.why
        if fault.tier and fault.tier not in tiers:
            return NO_TIER, f"needs {fault.tier}"
        sound = [check for check in fault.checks if check in self.times]
        if not sound:
            return UNCHECKED, "none of its checks passes without the fault"
        try:
            self.copy.write(fault.file, text)
            return self._checked(fault, text, sound)
        finally:
            self.copy.write(fault.file, sound_text)

    def _checked(self, fault: Fault, text: str, checks: list[str]) -> tuple[str, str]:
        if fault.file.endswith(".py"):
            try:
                compile(text, fault.file, "exec")
            except SyntaxError as error:
                return UNBUILT, str(error)
        for check in checks:
            built = self.copy.build(program=check.startswith("kvb-check"))
            if built and built.code != 0:
                self._keep(fault.name, built)
                return UNBUILT, f"see {self.logs}"
            limit = max(LEAST, SLOWER * self.times[check])
            ended = self.copy.run(self.copy.command(check), limit)
            self._keep(fault.name, ended)
            if ended.code != 0:
                return CAUGHT, check + (" (ran out of time)" if ended.code is None else "")
        return MISSED, f"passed: {'; '.join(checks)}"

    def _keep(self, name: str, ended: Ended) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        file = "".join(letter if letter.isalnum() else "-" for letter in name)[:100]
        (self.logs / f"{file}.txt").write_text(f"{name}\nexit code {ended.code}\n{ended.said}")


def _how(ended: Ended, limit: float) -> str:
    return f"not done after {limit} s" if ended.code is None else f"exit code {ended.code}"
