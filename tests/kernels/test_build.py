"""What compilers say of the sources: on a processor without a vector tier, or with other limits."""

import shutil
import subprocess

import pytest

from tests.raw import ROOT

KERNELS = ROOT / "kernels"


@pytest.fixture(scope="module", autouse=True)
def compiler():
    if not shutil.which("cc"):
        pytest.skip("no C compiler")


def compiled(*command):
    done = subprocess.run(
        ["cc", *map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )
    return "" if done.returncode == 0 else done.stderr or "?"


def test_another_processor_has_the_scalar_tier(tmp_path):
    """The compiler's name of the processor is undefined, as on another one. glibc lacks one file
    for that.
    """
    (tmp_path / "gnu").mkdir()
    (tmp_path / "gnu" / "stubs-32.h").touch()
    unknown = [f"-U{name}" for name in ("__x86_64__", "__i386__", "__aarch64__")]
    sources = [path for path in KERNELS.glob("*/*.c") if path.parent.name not in ("isa", "example")]
    assert len(sources) > 30
    flags = ["-fsyntax-only", "-w", "-D_FILE_OFFSET_BITS=64", f"-I{tmp_path}", f"-I{KERNELS}"]
    assert not compiled(*flags, *unknown, *sources)


@pytest.fixture
def kernels(tmp_path):
    """Copy the sources; return the copy and a function that changes it."""
    shutil.copytree(KERNELS, tmp_path / "kernels")

    def changed(path, before, after):
        text = (tmp_path / "kernels" / path).read_text()
        assert before in text
        (tmp_path / "kernels" / path).write_text(text.replace(before, after))
        return tmp_path / "kernels"

    return changed


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("base/words.h", "TILE = 1024", "TILE = 262144"),
        ("base/words.h", "DIM_MAX = 1024", "DIM_MAX = 262144"),
    ],
)
def test_sums_that_would_not_fit_are_not_compiled(kernels, path, before, after):
    """Products of whole numbers are added up in 32 bits."""
    folder = kernels("tier/dot.h", "#ifndef", "#ifndef")
    command = ("-fsyntax-only", f"-I{folder}", "-x", "c", folder / "tier" / "dot.h")
    assert not compiled(*command)
    kernels(path, before, after)
    assert "a sum fits 32 bits" in compiled(*command)
