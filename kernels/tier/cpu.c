/* Which tiers and halves this CPU runs. A tier needs instructions and, on x86, an operating system
 * that saves its registers. A half may need more instructions. */
#include "tier/tier.h"

typedef struct needs needs;

typedef struct rung {
    int32_t isa;
    const needs *needs;
} rung;

/* A half that needs more of the CPU than its tier. */
enum { QK = 1 << KVB_K, PV = 1 << KVB_V, BOTH = QK | PV };
typedef struct half {
    int32_t isa;
    int32_t planes; /* QK, PV or BOTH */
    int32_t way;
    const needs *more;
} half;

/* Each architecture defines: `needs`; found(), what this CPU has; `ladder`, its tiers, the best one
 * first; `richer`, tiers with a second table for CPUs with more instructions (kvb_tier_with);
 * `halves` that need more than their tier. A tier that is not in `ladder` does not exist there. */
#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* Bits of cpuid leaf 1 ecx, leaf 7 ebx, ecx and subleaf 1 eax, and of the register states in xcr0.
 */
enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };
enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 };
enum { AVX512VBMI = 1 << 1, AVX512VNNI = 1 << 11 }; /* leaf 7 ecx */
enum { AVXVNNI = 1 << 4, AVX512BF16 = 1 << 5 };     /* leaf 7, subleaf 1 */
#define AVX512VL (1u << 31)                         /* too large for an enum */
enum { STATE_XMM = 1 << 1, STATE_YMM = 1 << 2, STATE_ZMM = 7 << 5 };

struct needs {
    uint32_t leaf1;
    uint32_t leaf7;
    uint32_t state;
    uint32_t leaf7c;
    uint32_t leaf71;
};

static needs found(void)
{
    needs cpu = {0};
    uint32_t a = 0, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d))
        cpu.leaf1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        cpu.leaf7 = b, cpu.leaf7c = c;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        cpu.leaf71 = a;
    if (cpu.leaf1 & OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(cpu.state), "=d"(d) : "c"(0));
    return cpu;
}

static bool covers(needs cpu, needs tier)
{
    return !(tier.leaf1 & ~cpu.leaf1) && !(tier.leaf7 & ~cpu.leaf7) &&
           !(tier.leaf7c & ~cpu.leaf7c) && !(tier.leaf71 & ~cpu.leaf71) &&
           !(tier.state & ~cpu.state);
}

static const needs nothing = {0};
static const needs avx2 = {
    .leaf1 = FMA | OSXSAVE | AVX | F16C, .leaf7 = AVX2, .state = STATE_XMM | STATE_YMM};
static const needs avx512 = {
    .leaf1 = FMA | OSXSAVE | AVX | F16C,
    .leaf7 = AVX2 | AVX512F | AVX512DQ | AVX512BW | AVX512VL,
    .state = STATE_XMM | STATE_YMM | STATE_ZMM,
};
static const needs vnni = {.leaf7c = AVX512VNNI};
static const needs avx_vnni = {.leaf71 = AVXVNNI};
static const needs bf16 = {.leaf71 = AVX512BF16};
static const needs bf16_of_bytes = {.leaf7c = AVX512VBMI, .leaf71 = AVX512BF16};

static const rung ladder[] = {
    {ISA_AVX512, &avx512},
    {ISA_AVX2, &avx2},
    {ISA_SCALAR, &nothing},
};
static const rung richer[] = {{ISA_AVX2, &avx_vnni}};
#define OF_BYTES(word, name) {ISA_AVX512, BOTH, WAY_DOT_##name, &bf16_of_bytes},
static const half halves[] = {{ISA_AVX512, BOTH, WAY_DOT_I8, &vnni},
                              {ISA_AVX512, BOTH, WAY_DOT_Q8_0, &vnni},
                              {ISA_AVX512, BOTH, WAY_DOT_Q4_0, &vnni},
                              {ISA_AVX512, BOTH, WAY_DOT_BF16, &bf16},
                              KVB_FLOATS8(OF_BYTES)};

#elif defined(__aarch64__)

#include <sys/auxv.h>
#include <sys/prctl.h>

/* Bits of AT_HWCAP and AT_HWCAP2. `vector`: bits of an SVE vector; 0: none, or any for a tier. */
enum { ASIMD = 1 << 1, ASIMDDP = 1 << 20, SVE = 1 << 22 };
enum { SVEBF16 = 1 << 12, BF16 = 1 << 14 }; /* AT_HWCAP2 */

struct needs {
    unsigned long hwcap;
    unsigned long hwcap2;
    int32_t vector;
};

/* The vector length is that of the calling thread; threads that it starts inherit it. A thread with
 * another length must not run a tier. The operating system may set it below the CPU's length. */
static needs found(void)
{
    needs cpu = {.hwcap = getauxval(AT_HWCAP), .hwcap2 = getauxval(AT_HWCAP2)};
    int length = cpu.hwcap & SVE ? prctl(PR_SVE_GET_VL) : -1;
    if (length >= 0)
        cpu.vector = (length & PR_SVE_VL_LEN_MASK) * 8;
    return cpu;
}

static bool covers(needs cpu, needs tier)
{
    return !(tier.hwcap & ~cpu.hwcap) && !(tier.hwcap2 & ~cpu.hwcap2) &&
           (!tier.vector || tier.vector == cpu.vector);
}

static const needs nothing = {0};
static const needs neon = {.hwcap = ASIMD};
static const needs sve256 = {.hwcap = ASIMD | SVE, .vector = 256};
static const needs sve512 = {.hwcap = ASIMD | SVE, .vector = 512};
static const needs dot_products = {.hwcap = ASIMDDP};
static const needs bf16 = {.hwcap2 = BF16};
static const needs bf16_of_sve = {.hwcap2 = SVEBF16};

static const rung ladder[] = {
    {ISA_SVE512, &sve512},
    {ISA_SVE256, &sve256},
    {ISA_NEON, &neon},
    {ISA_SCALAR, &nothing},
};
static const rung richer[] = {{-1, &nothing}};
#define OF_FLOATS(word, name)                                                                  \
    {ISA_NEON, BOTH, WAY_DOT_##name, &bf16}, {ISA_SVE256, BOTH, WAY_DOT_##name, &bf16_of_sve}, \
        {ISA_SVE512, BOTH, WAY_DOT_##name, &bf16_of_sve},
static const half halves[] = {{ISA_NEON, BOTH, WAY_DOT_I8, &dot_products},
                              {ISA_NEON, BOTH, WAY_DOT_Q8_0, &dot_products},
                              {ISA_NEON, BOTH, WAY_DOT_Q4_0, &dot_products},
                              KVB_DOT_FLOATS(OF_FLOATS)};

#else

struct needs {
    int32_t none;
};
static needs found(void) { return (needs){0}; }
static bool covers(needs cpu, needs tier) { return cpu.none == tier.none; }
static const needs nothing = {0};

static const rung ladder[] = {{ISA_SCALAR, &nothing}};
static const rung richer[] = {{-1, &nothing}};
static const half halves[] = {{-1, BOTH, 0, &nothing}};

#endif

enum { RUNGS = sizeof ladder / sizeof *ladder, HALVES = sizeof halves / sizeof *halves };

/* Found once, when the library is loaded: in a virtual machine each cpuid takes tens of
 * microseconds. */
static needs cpu;
__attribute__((constructor)) static void ask(void) { cpu = found(); }

int32_t kvb_isa_runs(int32_t isa)
{
    for (int i = 0; i < RUNGS; i++)
        if (ladder[i].isa == isa)
            return kvb_tier_of(isa) && covers(cpu, *ladder[i].needs);
    return 0;
}

bool kvb_half_runs(int32_t isa, int32_t way, int32_t plane)
{
    for (const half *h = halves; h < halves + HALVES; h++)
        if (h->isa == isa && h->way == way && h->planes >> plane & 1)
            return covers(cpu, *h->more);
    return true;
}

bool kvb_has_more(int32_t isa)
{
    for (size_t i = 0; i < sizeof richer / sizeof *richer; i++)
        if (richer[i].isa == isa)
            return covers(cpu, *richer[i].needs);
    return false;
}

int32_t kvb_isa_best(void)
{
    for (int i = 0; i < RUNGS; i++)
        if (kvb_isa_runs(ladder[i].isa))
            return ladder[i].isa;
    return ISA_SCALAR;
}
