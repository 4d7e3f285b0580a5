"""Damaged run directories: one line and exit code 2, or a usable run. Never a traceback."""

import random
import shutil

import pytest

from kvbench.errors import KvbenchError
from kvbench.model import Point, Probe
from kvbench.store import RunDirectory
from tests.store import ruin
from tests.store.made import POINTS, failed, manifest, visits
from tests.store.ruin import DAMAGES, FILES


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return written(tmp_path_factory.mktemp("sound") / "run")


@pytest.fixture
def place(tmp_path):
    """A folder that also holds another run."""
    written(tmp_path / ruin.OTHER, run="another")
    return tmp_path


def written(path, **facts):
    with RunDirectory.create(path, manifest(launches=3, **facts)) as run:
        for record in visits(launches=2):
            run.append(record)
        run.append(failed(2, POINTS[0]))
        run.write_machine(
            {"fingerprint": "f", "topology": {"cpus": [0, 1]}, "ceilings": [{"gbps": 1.5}]}
        )
    return path


def used(path):
    """Everything that can be asked of a directory."""
    with RunDirectory.open(path) as run:
        run.machine()
        names = {point.name for point in run.manifest.plan.points}
    with RunDirectory.open(path, write=True) as again:
        assert again.records == run.records
        again.export()
    for record in run.records:
        assert isinstance(record.point, Point | Probe) and record.point.name in names
        assert all(sample.seconds / sample.passes > 0 for sample in record.samples)
    assert len({(record.launch, record.point) for record in run.records}) == len(run.records)


def test_the_sound_run_is_sound(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "run")
    used(tmp_path / "run")
    assert (tmp_path / "run" / "run.json.gz").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", sorted({damage.__name__ for damage in DAMAGES}))
def test_every_damage_to_every_file(sound, place, name, damage):
    for seed in range(4):
        path = place / str(seed)
        shutil.copytree(sound, path)
        getattr(ruin, damage)(path / name, random.Random(f"{name} {damage} {seed}"))
        try:
            used(path)
        except KvbenchError as error:
            assert error.exit_code == 2 and "\n" not in str(error)
