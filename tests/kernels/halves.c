/* Lists which halves of the avx512 tier a CPU runs, and whether it has more than the avx2 tier
 * needs. The test chooses the answers of cpuid. */
#include <cpuid.h>

/* cpuid leaf 7: the highest subleaf, ecx, and eax of subleaf 1. */
static unsigned int subleaves, ecx, eax;

static int no_cpuid(unsigned int leaf, unsigned int *a, unsigned int *b, unsigned int *c,
                    unsigned int *d)
{
    *a = *b = *c = *d = 0;
    return leaf == 1;
}
static int told_cpuid(unsigned int leaf, unsigned int subleaf, unsigned int *a, unsigned int *b,
                      unsigned int *c, unsigned int *d)
{
    *a = subleaf ? eax : subleaves;
    *b = *d = 0;
    *c = subleaf ? 0 : ecx;
    return leaf == 7;
}

#define __get_cpuid no_cpuid
#define __get_cpuid_count told_cpuid
#include "tier/cpu.c"

const kvb_tier *kvb_tier_of(int32_t isa) { return (void)isa, NULL; }

__attribute__((visibility("default"))) int32_t half_runs(const unsigned int *told, int32_t variant,
                                                         int32_t dtype, int32_t plane)
{
    subleaves = told[0], ecx = told[1], eax = told[2];
    ask();
    return kvb_reads(variant, LAYOUT_HEAD, dtype, plane) >= 0 &&
           kvb_half_runs(ISA_AVX512, kvb_way_of(variant, dtype), plane);
}

__attribute__((visibility("default"))) int32_t has_more(const unsigned int *told)
{
    subleaves = told[0], ecx = told[1], eax = told[2];
    ask();
    return kvb_has_more(ISA_AVX2);
}
