"""A CPU without an extension of avx512, or without AVX-VNNI, does not run code that needs it."""

import platform
from pathlib import Path

import pytest

from tests import formats
from tests.raw import compiled

SOURCES = ("tier/variants", "cache/layouts", "cache/transposed")
VBMI, VNNI, AVX_VNNI, BF16 = 1 << 1, 1 << 11, 1 << 4, 1 << 5
WHOLE, FLOATS8 = {"i8", *formats.PACKED}, set(formats.MOST)
# leaf 7: highest subleaf, ecx, eax of subleaf 1; then the dtypes that `dot` multiplies there
CPUS = {
    "Skylake": ((0, 0, 0), set()),
    "Cascade Lake": ((0, VNNI, 0), WHOLE),
    "a subleaf that is not there": ((0, VNNI, BF16), WHOLE),
    "Cooper Lake": ((1, VNNI, BF16), WHOLE | {"bf16"}),
    "Ice Lake": ((0, VNNI | VBMI, 0), WHOLE),
    "Zen 4": ((1, VNNI | VBMI, BF16), WHOLE | {"bf16"} | FLOATS8),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if platform.machine() != "x86_64":
        pytest.skip("cpuid is x86's")
    declared = """int32_t half_runs(const unsigned int *, int32_t, int32_t, int32_t);
        int32_t has_more(const unsigned int *);"""
    path = tmp_path_factory.mktemp("halves") / "halves.so"
    return compiled(path, Path(__file__).with_name("halves.c"), SOURCES, declared)


@pytest.mark.parametrize("cpu", CPUS)
def test_dot_runs_where_its_instructions_are(raw, program, cpu):
    _, lib = program
    told, expected = CPUS[cpu]
    for plane in (0, 1):
        runs = {
            word
            for word in raw.words("dtype")
            if lib.half_runs(told, raw.word("variant", "dot"), raw.word("dtype", word), plane)
        }
        assert runs == expected
    assert lib.half_runs(told, raw.word("variant", "flash"), raw.word("dtype", "bf16"), 0)


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ((0, VNNI, AVX_VNNI), False),
        ((1, VNNI, BF16), False),
        ((1, 0, AVX_VNNI), True),
        ((1, VNNI, AVX_VNNI | BF16), True),
    ],
    ids=["a subleaf that is not there", "Zen 4", "Alder Lake", "Zen 5"],
)
def test_avx2_takes_avx_vnni_where_it_is(program, told, more):
    _, lib = program
    assert lib.has_more(told) == more
