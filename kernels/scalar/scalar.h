/* The scalar tier: plain C that defines what every other tier must compute. */
#ifndef KVB_SCALAR_H
#define KVB_SCALAR_H

#include <string.h>

#include "tier/tier.h"

#pragma GCC visibility push(hidden)

/* ---- rows.c: `read` is a dtype, or a way to read its rows ------------------------------------ */

uint16_t kvb_scalar_f16(float x); /* rounded to nearest even */
float kvb_scalar_from_f16(uint16_t bits);
uint16_t kvb_scalar_bf16(float x); /* likewise */
static inline float kvb_scalar_from_bf16(uint16_t bits)
{
    const uint32_t word = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}
/* Return 1 / scale, or 0 if that is not finite: then all products with it are zero. */
float kvb_scalar_inverse(float scale);
static inline float kvb_scalar_number(float x) { return x == x ? x : 0.0f; } /* a NaN counts as 0 */

void kvb_scalar_encode(int32_t dtype, const kvb_encode *rows);
void kvb_scalar_decode(int32_t read, const uint8_t *row, float scale, int64_t dim, float *to);

/* ---- blocks.c: packed rows ------------------------------------------------------------------- */

void kvb_scalar_pack(int32_t dtype, const float *from, int64_t dim, uint8_t *row);
float kvb_scalar_packed(int32_t dtype, const uint8_t *row, int64_t d); /* value of element d */
int kvb_scalar_code(int32_t dtype, const uint8_t *row, int64_t d);     /* its code; also for i8 */
/* the scale of its block; 1 for i8 */
float kvb_scalar_step(int32_t dtype, const uint8_t *row, int64_t d);

/* ---- attend.c -------------------------------------------------------------------------------- */

/* Assert what every stage may rely on. */
void kvb_scalar_assert(const kvb_tile *tile, const kvb_group *group);
/* Return a query row. In this tier each is contiguous. */
static inline const float *kvb_scalar_q(const kvb_group *g, int64_t q_row)
{
    return g->q + q_row * g->k_pad;
}

void kvb_scalar_qk(int32_t read, const kvb_tile *tile, const kvb_group *group, float *scores);
void kvb_scalar_max(const kvb_tile *tile, const kvb_group *group, float *scores);
void kvb_scalar_exp(const kvb_tile *tile, const kvb_group *group, float *scores);
void kvb_scalar_pv(int32_t read, const kvb_tile *tile, const kvb_group *group, const float *p);
void kvb_scalar_perhead(int32_t dtype, const kvb_tile *tile, const kvb_group *group);

/* ---- dot.c ----------------------------------------------------------------------------------- */

void kvb_scalar_prepare_query(int32_t dtype, const kvb_group *group);
void kvb_scalar_qk_dot(int32_t dtype, const kvb_tile *tile, const kvb_group *group, float *scores);
void kvb_scalar_pv_dot(int32_t dtype, const kvb_tile *tile, const kvb_group *group, const float *p);

/* ---- dot_floats.c ---------------------------------------------------------------------------- */

void kvb_scalar_round_query(const kvb_group *group);
void kvb_scalar_qk_rounded(int32_t dtype, const kvb_tile *tile, const kvb_group *group,
                           float *scores);
void kvb_scalar_pv_rounded(int32_t dtype, const kvb_tile *tile, const kvb_group *group,
                           const float *p);

/* ---- probe.c --------------------------------------------------------------------------------- */

void kvb_scalar_twin(const kvb_tile *tile, kvb_sum *sum);
void kvb_scalar_read(const void *from, int64_t bytes, kvb_ahead ahead, kvb_sum *sum);
void kvb_scalar_write(void *to, int64_t bytes);
void kvb_scalar_write_nt(void *to, int64_t bytes);
void kvb_scalar_copy(void *to, const void *from, int64_t bytes, int64_t distance);
void kvb_scalar_copy_nt(void *to, const void *from, int64_t bytes, int64_t distance);
void kvb_scalar_triad(void *to, const void *from, const void *from2, int64_t bytes);
double kvb_scalar_flops(int64_t rounds);
double kvb_scalar_dots8(int64_t rounds);
double kvb_scalar_dots16(int64_t rounds);

#pragma GCC visibility pop

#endif
