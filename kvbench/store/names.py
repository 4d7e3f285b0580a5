"""Names of the files that kvbench keeps for a run, a score and a history."""

from pathlib import Path

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
MACHINE = "machine.json"
EXPORT = "run.json.gz"
SUMMARY = "summary.json"
FILES = (MANIFEST, JOURNAL, MACHINE, EXPORT, SUMMARY)  # the files of a run directory

SEAL = "score.json"  # beside the files of a run that is a score
LONGER = "longer"  # folder of a score's second run
LOADED = "loaded"  # folder of a score's third run
ACCEPTED = "accepted.json"  # in the root of a history


def owner(path: Path) -> str:
    """What a file with this path belongs to: a run, a history, or "" for neither."""
    if path.name in (*FILES, SEAL, LONGER, LOADED) and any(
        (path.parent / name).exists() for name in (MANIFEST, JOURNAL)
    ):
        return f"the run {path.parent}"
    if path.name == ACCEPTED and path.exists():
        return f"the history {path.parent}"
    return ""
