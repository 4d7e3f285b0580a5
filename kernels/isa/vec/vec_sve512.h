/* 512-bit vectors: SVE on a CPU, and in a process, whose vectors are just as long. */
#define TIER kvb_tier_sve512
#define SVE_BITS 512
#include "isa/vec/vec_sve.h"
