/* 512-bit vectors: SVE, if vectors of the CPU and of the process have exactly this length. */
#define TIER kvb_tier_sve512
#define SVE_BITS 512
#include "isa/vec/vec_sve.h"
