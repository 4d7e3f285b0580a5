/* f32 rows whose elements pass through f16: a tile of rounded copies, and then what f32 does with it. */
#include <assert.h>

#include "scalar/scalar.h"

void kvb_scalar_decode_round16(const uint8_t *row, float scale, int64_t dim, float *to)
{
    const float *from = (const float *)(const void *)row;
    (void)scale;
    for (int64_t d = 0; d < dim; d++)
        to[d] = kvb_scalar_from_f16(kvb_scalar_f16(from[d]));
}

typedef struct copies {
    float rows[TILE_BYTES / sizeof(float)];
    int64_t places[TILE];
    kvb_tile tile;
} copies;

/* Of `count` rows, behind which nothing is read. */
static kvb_places copy(kvb_places rows, int64_t count, int64_t dim, copies *to)
{
    assert(count * dim * (int64_t)sizeof *to->rows <= TILE_BYTES);
    for (int64_t t = 0; t < count; t++) {
        kvb_scalar_decode_round16(kvb_row_at(rows, t), 1.0f, dim, to->rows + t * dim);
        to->places[t] = t * dim * (int64_t)sizeof *to->rows;
    }
    return (kvb_places){(const uint8_t *)to->rows, to->places};
}

void kvb_scalar_qk_round16(const kvb_tile *tile, const kvb_group *group, float *scores)
{
    copies rounded;
    rounded.tile = *tile;
    rounded.tile.k = copy(tile->k, round_up(tile->count, LANES), group->dim, &rounded);
    kvb_scalar_qk(DTYPE_F32, &rounded.tile, group, scores);
}

void kvb_scalar_pv_round16(const kvb_tile *tile, const kvb_group *group, const float *p)
{
    copies rounded;
    rounded.tile = *tile;
    rounded.tile.v = copy(tile->v, tile->count, group->dim, &rounded);
    kvb_scalar_pv(DTYPE_F32, &rounded.tile, group, p);
}
