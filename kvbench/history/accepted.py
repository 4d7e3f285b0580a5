"""The steps that somebody has accepted. They are said by people, so they are kept beside the runs, in a file that can
be read, corrected and put under version control: accepted.json."""

import os
from dataclasses import asdict
from pathlib import Path

from kvbench.analysis.trend import Accepted
from kvbench.errors import BadRun
from kvbench.store.files import read_json, short, write_json, writing
from kvbench.store.values import read

FILE = "accepted.json"
_FORMAT = 1


def accepted(root: Path) -> tuple[Accepted, ...]:
    path = root / FILE
    if not os.path.lexists(path):
        return ()
    try:
        facts = read(dict[str, object], read_json(path))
        if facts.get("format") != _FORMAT:
            raise ValueError(f"format is {str(facts.get('format'))[:20]}, and this kvbench reads format {_FORMAT}")
        return read(tuple[Accepted, ...], facts.get("accepted"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or short(error)
        raise BadRun(f"{path} cannot be used: {why}", "correct it, or move it away and accept again") from None


def add(root: Path, more: tuple[Accepted, ...]) -> None:
    found = [asdict(each) for each in (*accepted(root), *more)]
    with writing(root / FILE, "then accept again"):
        write_json(root / FILE, {"format": _FORMAT, "accepted": found})
