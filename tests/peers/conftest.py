"""Another interpreter: one that has NumPy, and neither kvbench nor anything else."""

import venv
from pathlib import Path

import numpy as np
import pytest

NUMPY = "0.0.1"  # the version that it says


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interpreter")
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    own = Path(np.__file__).parent
    for name in (own.name, "numpy.libs"):
        if (there := own.with_name(name)).exists():
            (packages / name).symlink_to(there)
    info = packages / f"numpy-{NUMPY}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numpy\nVersion: {NUMPY}\n")
    (info / "RECORD").write_text("numpy/of_another.so,,\n")
    return folder / "bin" / "python"
