"""A package with peers, as one from outside brings them: by entry points."""

from pathlib import Path


def register(folder, package, points):
    """In a folder that is on the path of processes. points: "name = module:Class"."""
    info = Path(folder) / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[kvbench.peers]", *points, ""]))
