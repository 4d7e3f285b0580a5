/* The avx512 tier is emulated in this build, so it runs where avx2 does. cpu.c is compiled with its own answer under
 * the name kvb_cpu_runs. */
#include "core.h"

int32_t kvb_cpu_runs(int32_t isa);

int32_t kvb_isa_runs(int32_t isa) { return kvb_cpu_runs(isa == ISA_AVX512 ? ISA_AVX2 : isa); }
