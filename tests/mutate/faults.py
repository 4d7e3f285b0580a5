"""Faults are small edits in the TOML files of this folder. This module reads them and finds where
each fits.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
KINDS = ("pytest", "kvb-check", "verify")  # a check begins with one of these
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SPACE = r"(?:\s|\\\n)"  # also between the lines of a macro


@dataclass(frozen=True)
class Fault:
    """One edit of one file, and the checks that should fail with it, the cheapest first."""

    name: str
    room: str
    file: str
    find: str  # occurs once in the file; white space does not count
    replace: str
    checks: tuple[str, ...] = ()
    tier: str = ""  # the instruction set that the fault needs
    why: str = ""  # the reason, if no check can see it here

    @property
    def in_c(self) -> bool:
        return self.file.startswith("kernels/")

    def edited(self, text: str) -> str | None:
        """Return the file's text with the fault, or None if the edit does not fit exactly once."""
        found = list(pattern(self.find).finditer(text))
        if len(found) != 1:
            return None
        start, end = found[0].span()
        return text[:start] + self.replace + text[end:]


def pattern(find: str) -> re.Pattern[str]:
    """Return a pattern of the text's tokens in this order, with any white space between them. It
    allows the comma that a formatter of Python puts before a bracket on a line of its own.
    """
    tokens = _TOKEN.findall(find)
    parts = [r"(?<!\w)" if re.match(r"\w", tokens[0]) else ""]
    for before, token in zip(["", *tokens], tokens, strict=False):
        words = re.match(r"\w", before) and re.match(r"\w", token)
        parts.append(_SPACE + ("+" if words else "*") if before else "")
        comma = f"(?:,{_SPACE}*)?" if token in ")]}" and before != "," else ""
        parts.append(comma + re.escape(token))
    parts.append(r"(?!\w)" if re.match(r"\w", tokens[-1]) else "")
    return re.compile("".join(parts))


def read(folder: Path = FOLDER) -> list[Fault]:
    """Read the faults of every file of the folder, in order."""
    found = [fault for path in sorted(folder.glob("*.toml")) for fault in of_file(path)]
    names = [fault.name for fault in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two faults have one name: {', '.join(twice)}")
    return found


def of_file(path: Path) -> Iterator[Fault]:
    for row in tomllib.loads(path.read_text()).get("fault", []):
        try:
            fault = Fault(**row | {"checks": tuple(row.get("checks", ()))})
        except TypeError as error:
            raise ValueError(f"{path.name}: {row.get('name')}: {error}") from None
        if bool(fault.checks) == bool(fault.why):
            raise ValueError(f"{path.name}: {fault.name}: needs either checks or why")
        for check in fault.checks:
            if check.split()[0] not in KINDS:
                raise ValueError(
                    f"{path.name}: {fault.name}: a check begins with {', '.join(KINDS)}: {check}"
                )
        yield fault
