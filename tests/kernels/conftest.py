import shutil

import pytest

from tests.processes import succeeds
from tests.raw import ROOT, Raw, Team, library_path
from tests.trial import Bench


def pytest_generate_tests(metafunc):
    """Run a test that takes `isa` on every tier of this CPU."""
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", Raw().tiers())


@pytest.fixture(scope="session")
def raw():
    return Raw()


@pytest.fixture(scope="module")
def team(raw):
    """Open a team of one thread."""
    with Team(raw, 1) as team:
        yield team


@pytest.fixture(scope="session")
def bench(raw):
    bench = Bench(raw)
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def program(request, tmp_path_factory):
    """Build the module's SOURCE with the library: a program for valgrind."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind: apt install valgrind")
    source = ROOT / "tests" / "kernels" / request.module.SOURCE
    path, library = tmp_path_factory.mktemp(source.stem) / source.stem, library_path()
    command = [
        compiler,
        "-O1",
        "-Wall",
        "-Wextra",
        "-I",
        ROOT / "kernels",
        source,
        "-o",
        path,
        library,
    ]
    folder = library.rpartition("/")[0]
    succeeds([*command, f"-Wl,-rpath,{folder}"])
    return path
