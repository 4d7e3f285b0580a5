/* Scores of a tile whose K is transposed: a tile of rows out of its blocks, and then what is done with rows. */
#include <assert.h>

#include "scalar/scalar.h"

void kvb_scalar_qk_t(int32_t row_kernel, const kvb_tile *tile, const kvb_group *group, float *scores)
{
    const bool whole = row_kernel == READ_DOT8 || row_kernel == READ_DOT16;
    const int32_t dtype = whole ? DTYPE_I8 : row_kernel;
    _Alignas(LINE) uint8_t rows[TILE_BYTES];
    int64_t places[TILE];
    kvb_tile plain = *tile;
    plain.k = (kvb_places){rows, places};
    assert(round_up(tile->count, LANES) * kvb_row(dtype, group->dim) <= TILE_BYTES);
    for (int64_t t = 0; t < round_up(tile->count, LANES); t++) {
        places[t] = t * kvb_row(dtype, group->dim);
        kvb_gather(dtype, kvb_row_at(tile->k, t / LANES * LANES), t % LANES, group->dim, rows + places[t]);
    }
    if (whole)
        kvb_scalar_qk_dot(&plain, group, scores);
    else
        kvb_scalar_qk(dtype, &plain, group, scores);
}
