"""Digests of machine code: libraries that are made to differ in one place, in the order of linking, or not at all."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvbench.gate.builds import build
from kvbench.gate.code import digests
from kvbench.model import Kernel
from kvbench.native import Library, default_library
from tests import cases, trial
from tests.raw import Raw

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-ffunction-sections", "-fdata-sections")
COMPILERS = {"x86_64": "x86_64-linux-gnu-gcc", "aarch64": "aarch64-linux-gnu-gcc"}


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    assert one.keys() == other.keys()
    return {name for name, digest in one.items() if other[name] != digest}


# ---- our own library, compiled quickly ----------------------------------------------------------------------------


class Sources:
    """A copy with the plainest vector tier alone, built again after each edit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("vec_avx512.h"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        self.count = 0

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / "kernels" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    def build(self, *options: str) -> Path:
        made, self.count = self.folder / "made", self.count + 1
        flags = {"CFLAGS": " ".join(("-O0", *FLAGS)), "LDFLAGS": "-Wl,--emit-relocs"}
        configure = ["cmake", "-S", self.folder / "kernels", "-B", made, "-DCMAKE_BUILD_TYPE=Plain"]
        configure += ["-G", "Ninja"] if shutil.which("ninja") else []
        for command in ([*configure, *(f"-D{option}" for option in options)], ["cmake", "--build", made]):
            subprocess.run(command, env={**os.environ, **flags}, check=True, capture_output=True)
        return shutil.copy(made / "libkvbench.so", self.folder / f"{self.count}.so")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    sources, made = Sources(tmp_path_factory.mktemp("sources")), {}
    place = "    float sums[QK_ACC];\n"
    sources.edit("isa/qk.tmpl.c", place, place + "    if (SCALED)\n        acc[0] = v_add(acc[0], v_set1(1e-30f));\n")
    made["plain"] = sources.build()
    sources.edit("flash.c", "state->tile.k_ahead.at = state->tile.v_ahead.at = NULL;", "state->tile.k_ahead.at = NULL;")
    sources.edit("store.c", "enum { BLOCK = 16 };", "enum { BLOCK = 32 };")
    made["files"] = sources.build()
    sources.edit("flash.c", "state->tile.k_ahead.at = NULL;", "state->tile.k_ahead.at = state->tile.v_ahead.at = NULL;")
    sources.edit("store.c", "enum { BLOCK = 32 };", "enum { BLOCK = 16 };")
    made["shuffled"] = sources.build("KVB_SHUFFLE=1")
    sources.edit("isa/qk.tmpl.c", "1e-30f", "2e-30f")
    made["constant"] = sources.build()
    made["slow"] = sources.build("KVB_SLOW=0.1", "KVB_SLOW_ONLY=flash.head.f16")
    return made


@pytest.fixture(scope="module")
def kernels(libraries) -> list[Kernel]:
    return Library(libraries["plain"], ROOT / "kernels" / "abi.h").kernels()


@pytest.fixture(scope="module")
def found(libraries, kernels):
    return {name: digests(path, kernels) for name, path in libraries.items()}


def test_every_kernel_has_one(found, kernels):
    assert found["plain"].keys() == {kernel.id for kernel in kernels}
    assert len({found["plain"][kernel.id] for kernel in kernels if kernel.op == "decode"}) > 12


def test_the_order_of_linking_changes_nothing(found, libraries):
    assert libraries["shuffled"].read_bytes() != libraries["plain"].read_bytes()
    assert changed(found["plain"], found["shuffled"]) == set()


def test_a_constant_of_one_dtype_and_tier(found, kernels):
    vector = {kernel.isa for kernel in kernels} - {"scalar"}
    right = {kernel.id for kernel in kernels if (kernel.op, kernel.dtype) == ("decode", "i8") and kernel.isa in vector}
    assert len(right) > 8 and changed(found["plain"], found["constant"]) == right


def test_two_files(found, kernels):
    """flash, of which others are made, and stores of a block at a time: not clear, whose code is in the same file."""
    flash = ("flash", "round16", "dot8", "dot16")
    right = {kernel.id for kernel in kernels if kernel.variant in flash or kernel.op in ("append", "bulk")}
    assert len(right) > 40 and changed(found["plain"], found["files"]) == right


def test_a_slowdown(found, kernels, libraries):
    """Of one kernel: all of decode has the code that asks which one."""
    right = {kernel.id for kernel in kernels if kernel.op == "decode"}
    assert changed(found["constant"], found["slow"]) == right
    library = Library(libraries["slow"], ROOT / "kernels" / "abi.h")
    assert library.build.endswith("slowed by 0.1 flash.head.f16")


def test_a_slowed_library_answers_right(libraries):
    bench = trial.Bench(Raw(libraries["slow"]))
    for index in range(12):
        case = cases.make(bench.words, 43, index)
        assert trial.failures(bench, case, bench.raw.tiers()) == []
    bench.close()


@pytest.mark.full
def test_real_builds(tmp_path, monkeypatch):
    """As the gate makes them: all objects in another order, and a rebuild without the first one's files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    plain, shuffled = build(".", ROOT), build(".", ROOT, ["KVB_SHUFFLE=1"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    again = build(".", ROOT)
    kernels = Library(plain.library, plain.interface).kernels()
    assert plain.digest == again.digest != shuffled.digest
    assert changed(digests(plain.library, kernels), digests(shuffled.library, kernels)) == set()


def test_a_kernel_that_is_not_there(libraries, kernels):
    some = kernels[0]
    other = Kernel(some.op, "theirs", some.layout, some.dtype, some.isa, True, "a plug-in's")
    absent = Kernel(some.op, some.variant, some.layout, some.dtype, "avx512", True, "left out of this build")
    assert digests(libraries["plain"], [some, other, absent]).keys() == {some.id}


def test_a_library_that_does_not_tell(libraries, tmp_path, monkeypatch):
    stripped = shutil.copy(libraries["plain"], tmp_path / "stripped.so")
    subprocess.run(["strip", stripped], check=True)
    kernels = default_library().kernels()
    assert digests(Path(stripped), kernels) is None
    assert digests(default_library().path, kernels) is None
    (tmp_path / "words.so").write_text("words")
    assert digests(tmp_path / "words.so", kernels) is None
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    assert digests(libraries["plain"], kernels) is None


# ---- small libraries, for each instruction set that has a compiler here ---------------------------------------------

TASK = """\
extern void kvb_flash(float *), kvb_twopass(float *);
static void (*const variants[])(float *) = {kvb_flash, kvb_twopass};
static int calls;
const char *kvb_build(void) { return "-ffunction-sections -falign-functions=64"; }
void kvb_task_decode(int variant, float *to) { calls++; variants[variant](to); }
"""
FLASH = """\
struct tier { void (*qk)(float *); };
extern const struct tier kvb_tier_scalar;
extern int kvb_choose(int);
static const float weights[4] = {1, 2, 3, 4};
static __attribute__((noinline)) void work(float *to) { for (int i = 0; i < 4; i++) to[i] *= weights[i] * 1.75f; }
void kvb_flash(float *to) { work(to); kvb_tier_scalar.qk(to); to[0] += kvb_choose((int)to[1]); }
"""
TWOPASS = """\
static __attribute__((noinline)) void work(float *to) { to[0] = to[1] * 7.25f; }
void kvb_twopass(float *to) { work(to); }
"""
TIER = """\
struct tier { void (*qk)(float *); void (*qk2)(float *); };
static void qk_f32(float *to) { to[3] = 2.5f * to[2]; }
static void qk_f16(float *to) { to[3] = 4.5f * to[2]; }
const struct tier kvb_tier_scalar = {qk_f16, qk_f32};
"""
CHOOSE = """\
#define ALONE __attribute__((noinline)) void
ALONE one(void) { __asm__ volatile("nop"); }
ALONE two(void) { __asm__ volatile("nop; nop"); }
ALONE three(void) { __asm__ volatile("nop; nop; nop"); }
int kvb_choose(int which)
{
    switch (which) {
    case 0: one(); return 1;
    case 1: two(); return 7;
    case 2: three(); return 3;
    case 3: two(); one(); return 9;
    case 4: one(); two(); return 11;
    case 5: three(); two(); return 12;
    default: return 0;
    }
}
"""
SMALL = {"task": TASK, "flash": FLASH, "twopass": TWOPASS, "tier": TIER, "choose": CHOOSE}


def kernel(variant: str, dtype: str) -> Kernel:
    return Kernel("decode", variant, "head", dtype, "scalar", True, "")


KERNELS = [kernel(variant, dtype) for variant in ("flash", "twopass") for dtype in ("f32", "f16", "i8")]


class Small:
    """Compiles each text once."""

    def __init__(self, compiler: str, folder: Path) -> None:
        self.compiler, self.folder = compiler, folder
        self.objects: dict[str, Path] = {}
        self.made: dict[tuple[Path, ...], dict[str, str]] = {}

    def compiled(self, name: str, text: str) -> Path:
        if text not in self.objects:
            source = self.folder / f"{name}.c"
            source.write_text(text)
            self.objects[text] = self.folder / f"{name}{len(self.objects)}.o"
            flags = ["-O2", "-fPIC", "-fvisibility=hidden", *FLAGS, "-c", source, "-o", self.objects[text]]
            subprocess.run([self.compiler, *flags], check=True)
        return self.objects[text]

    def link(self, order: str = "task flash twopass tier choose", **changes: tuple[str, str]) -> dict[str, str]:
        """Digests of a library from its files in this order, some of them changed."""
        assert all(old in SMALL[name] for name, (old, _) in changes.items())
        texts = {name: SMALL[name].replace(*changes.get(name, ("", "")), 1) for name in order.split()}
        objects = tuple(self.compiled(name, text) for name, text in texts.items())
        if objects not in self.made:
            made = self.folder / f"{len(self.made)}.so"
            link = ["-shared", "-nostdlib", "-Wl,--emit-relocs", "-Wl,-Bsymbolic"]
            subprocess.run([self.compiler, *link, "-o", made, *objects], check=True)
            self.made[objects] = digests(made, KERNELS)
        assert self.made[objects].keys() == {each.id for each in KERNELS}
        return self.made[objects]


@pytest.fixture(scope="module", params=sorted(COMPILERS))
def small(request, tmp_path_factory):
    compiler = "cc" if platform.machine() == request.param else COMPILERS[request.param]
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    return Small(compiler, tmp_path_factory.mktemp(request.param))


def ids(variant: str, *dtypes: str) -> set[str]:
    return {kernel(variant, dtype).id for dtype in dtypes}


def test_places_do_not_count(small):
    plain = small.link()
    for order in ("choose tier twopass flash task", "tier task choose flash twopass"):
        assert changed(plain, small.link(order)) == set()


def test_places_within_a_line_do(small):
    """Where a library does not say that its functions are aligned: what the linker moves may not be as fast."""
    loose = {"task": (" -falign-functions=64", "")}
    plain, other = small.link(**loose), small.link("choose tier twopass flash task", **loose)
    assert changed(plain, other)


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({"flash": ("1.75f", "1.5f")}, ids("flash", "f32", "f16", "i8")),  # an instruction's operand or a constant
        ({"flash": ("{1, 2, 3, 4}", "{1, 2, 3, 5}")}, ids("flash", "f32", "f16", "i8")),  # an array
        ({"twopass": ("7.25f", "7.125f")}, ids("twopass", "f32", "f16", "i8")),  # a static function of the same name
        ({"tier": ("4.5f", "4.75f")}, ids("flash", "f16")),  # reached through a table, of one dtype
        ({"choose": ("three(); return 3", "two(); return 3")}, ids("flash", "f32", "f16", "i8")),  # who is called
        ({"choose": ("return 7", "return 8")}, ids("flash", "f32", "f16", "i8")),  # a table of numbers or jumps
        ({"task": ("calls++", "calls--")}, ids("flash", "f32", "f16", "i8") | ids("twopass", "f32", "f16", "i8")),
        ({"task": ("-ffunction-sections", "-g -ffunction-sections")}, set()),  # what the library says of itself
    ],
)
def test_what_counts(small, change, right):
    assert changed(small.link(), small.link("choose twopass task flash tier", **change)) == right
