/* The avx512 tier is emulated in this build, so it runs where avx2 does, with all its ways. cpu.c
 * is compiled with its own answers under the names kvb_cpu_runs and kvb_cpu_row_kernel_runs. */
#include "tier/tier.h"

int32_t kvb_cpu_runs(int32_t isa);
bool kvb_cpu_row_kernel_runs(int32_t isa, int32_t row_kernel);

int32_t kvb_isa_runs(int32_t isa) { return kvb_cpu_runs(isa == ISA_AVX512 ? ISA_AVX2 : isa); }

bool kvb_row_kernel_runs(int32_t isa, int32_t row_kernel)
{
    return isa == ISA_AVX512 || kvb_cpu_row_kernel_runs(isa, row_kernel);
}
