"""What the files are called that kvbench keeps: of a run, of a score, of a history."""

from pathlib import Path

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
MACHINE = "machine.json"
EXPORT = "run.json.gz"
SUMMARY = "summary.json"
FILES = (MANIFEST, JOURNAL, MACHINE, EXPORT, SUMMARY)  # of a run directory

SEAL = "score.json"  # beside the files of a run that is a score
LONGER = "longer"  # folder of a score's second run
LOADED = "loaded"  # and of its third one
ACCEPTED = "accepted.json"  # in the root of a history


def owner(path: Path) -> str:
    """What a file with this path is a part of: a run, a history, or "" for nothing of ours."""
    if path.name in (*FILES, SEAL, LONGER, LOADED) and any(
        (path.parent / name).exists() for name in (MANIFEST, JOURNAL)
    ):
        return f"the run {path.parent}"
    if path.name == ACCEPTED and path.exists():
        return f"the history {path.parent}"
    return ""
