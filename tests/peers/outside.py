"""A package with peers that registers them by entry points, as third parties do."""

from pathlib import Path


def register(folder, package, points):
    """Write entry points into a folder on the processes' path. points: "name = module:Class"."""
    info = Path(folder) / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[kvbench.peers]", *points, ""]))
