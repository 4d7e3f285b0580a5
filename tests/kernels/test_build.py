"""What compilers must say of the sources: on processors that nobody wrote a tier for, and of limits that are raised."""

import shutil
import subprocess

import cffi
import pytest

from tests.raw import ROOT

KERNELS = ROOT / "kernels"


@pytest.fixture(scope="module", autouse=True)
def compiler():
    if not shutil.which("cc"):
        pytest.skip("no C compiler")


def compiled(*command):
    done = subprocess.run(["cc", *map(str, command)], capture_output=True, text=True, timeout=120, check=False)
    return "" if done.returncode == 0 else done.stderr or "?"


def test_another_processor_has_the_scalar_tier(tmp_path):
    """As if this were one: what the compiler calls the processor is undefined. glibc lacks one file for that."""
    (tmp_path / "gnu").mkdir()
    (tmp_path / "gnu" / "stubs-32.h").touch()
    unknown = [f"-U{name}" for name in ("__x86_64__", "__i386__", "__aarch64__")]
    sources = [path for path in KERNELS.glob("*/*.c") if path.parent.name not in ("isa", "example")]
    assert len(sources) > 30
    flags = ["-fsyntax-only", "-w", "-D_FILE_OFFSET_BITS=64", f"-I{tmp_path}", f"-I{KERNELS}"]
    assert not compiled(*flags, *unknown, *sources)


@pytest.fixture
def kernels(tmp_path):
    """A copy of the sources, and how to change it."""
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
    """Of whole numbers, whose products are added up in 32 bits."""
    folder = kernels("tier/dot.h", "#ifndef", "#ifndef")
    command = ("-fsyntax-only", f"-I{folder}", "-x", "c", folder / "tier" / "dot.h")
    assert not compiled(*command)
    kernels(path, before, after)
    assert "a sum fits 32 bits" in compiled(*command)


TIERS = """
#include "cache/cache.h"
#include "tier/tier.h"
const kvb_tier kvb_tier_scalar = {.rows[0 ... READS - 1].qk[0] = (void (*)(const kvb_tile *, const kvb_group *, float *))1};
int32_t kvb_isa_runs(int32_t isa) { return isa == 0; }
bool kvb_row_kernel_runs(int32_t isa, int32_t kernel) { return isa == kernel; }
"""


def test_every_kernel_is_listed_however_many_there_are(kernels, tmp_path):
    """Of a library with a hundred dtypes more."""
    more = "".join(f" X(x{i}, X{i}, 1, 2, false)" for i in range(100))
    folder = kernels("base/dtypes.h", "X(q4_0, Q4_0, 32, 18, false)", "X(q4_0, Q4_0, 32, 18, false)" + more)
    (tmp_path / "tiers.c").write_text(TIERS)
    names = (
        "tier/registry",
        "tier/variants",
        "base/words",
        "base/check",
        "cache/layouts",
        "cache/transposed",
    )
    sources = [tmp_path / "tiers.c", *(folder / f"{name}.c" for name in names)]
    library = tmp_path / "listed.so"
    flags = ("-shared", "-fPIC", "-w", f"-I{folder}", "-Wl,--unresolved-symbols=ignore-all")
    assert not compiled(*flags, "-o", library, *sources)
    ffi = cffi.FFI()
    ffi.cdef((KERNELS / "abi.h").read_text())
    table, words = ffi.dlopen(str(library)).kvb_kernels, []
    while (row := table(len(words))) != ffi.NULL:
        words.append(tuple(ffi.string(text).decode() for text in (row.op, row.variant, row.layout, row.dtype, row.isa)))
    assert len(set(words)) == len(words)
    for index in range(
        100
    ):  # three plain layouts and not one that transposes K; flash, twopass, perhead, and the stores
        assert sum(word[3] == f"x{index}" for word in words) == 3 * 3 + 3 * 6 + 1
    assert ("clock", "-", "-", "-", "scalar") in words
