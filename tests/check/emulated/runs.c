/* In this build the avx512 tier is emulated: it runs where avx2 does, with all its halves. cpu.c is
 * compiled with other names for its functions: kvb_cpu_runs and kvb_cpu_half_runs. */
#include "tier/tier.h"

int32_t kvb_cpu_runs(int32_t isa);
bool kvb_cpu_half_runs(int32_t isa, int32_t way, int32_t plane);

int32_t kvb_isa_runs(int32_t isa) { return kvb_cpu_runs(isa == ISA_AVX512 ? ISA_AVX2 : isa); }

bool kvb_half_runs(int32_t isa, int32_t way, int32_t plane)
{
    return isa == ISA_AVX512 || kvb_cpu_half_runs(isa, way, plane);
}
