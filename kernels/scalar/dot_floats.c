/* dot over bf16 and 8-bit floats: flash with rounded query and weights. The rules are in
 * tier/dot.h. / */
#include <assert.h>
#include <math.h>

#include "tier/dot.h"
#include "scalar/scalar.h"

uint8_t kvb_code_bytes[DTYPES][2][128];

#define FLOATS(word, name) DTYPE_##name,
__attribute__((constructor)) static void make_code_bytes(void)
{
    static const int32_t floats[] = {KVB_FLOATS8(FLOATS)};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int code = 0; code < 128; code++) {
            const uint8_t row = (uint8_t)code;
            float x;
            kvb_scalar_decode(floats[i], &row, 1.0f, 1, &x);
            const uint16_t word = kvb_scalar_bf16(x);
            assert(x != x || kvb_scalar_from_bf16(word) == x); /* each value is a bf16 */
            kvb_code_bytes[floats[i]][0][code] = (uint8_t)word;
            kvb_code_bytes[floats[i]][1][code] = (uint8_t)(word >> 8);
        }
}

/* Round to bf16, to nearest even; 0 below 2^-126. */
static float rounded(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : kvb_scalar_from_bf16(kvb_scalar_bf16(x));
}

void kvb_scalar_round_query(const kvb_group *group)
{
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t d = 0; d < group->k_pad; d++)
            group->dealt[h * group->k_pad + d] = rounded(kvb_scalar_q(group, h)[d]);
}

void kvb_scalar_qk_rounded(int32_t dtype, const kvb_tile *tile, const kvb_group *group,
                           float *scores)
{
    kvb_group own = *group;
    own.q = group->dealt;
    kvb_scalar_qk(dtype, tile, &own, scores);
}

void kvb_scalar_pv_rounded(int32_t dtype, const kvb_tile *tile, const kvb_group *group,
                           const float *p)
{
    float weights[Q_ROWS * QUERY_SCORES];
    for (int64_t h = 0; h < group->q_rows; h++)
        for (int64_t t = 0; t < tile->count; t++)
            weights[h * QUERY_SCORES + t] = rounded(p[h * QUERY_SCORES + t]);
    kvb_scalar_pv(dtype, tile, group, weights);
}
