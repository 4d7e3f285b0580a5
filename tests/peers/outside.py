"""A package with peers from outside: they come by entry points."""

from pathlib import Path


def register(folder, package, points):
    """Register entry points in a folder on the path of processes. points: "name = module:Class"."""
    info = Path(folder) / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[kvbench.peers]", *points, ""]))
