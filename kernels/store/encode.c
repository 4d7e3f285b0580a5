/* Rows into the bytes of a cache whose plane may have a scale of its own. */
#include "store/store.h"

/* x / scale in float32, as others do it: times 1 / scale would round some elements to another code. */
void kvb_encode_rows(int32_t isa, int32_t dtype, float tensor, const kvb_encode *rows)
{
    void (*encode)(const kvb_encode *) = kvb_tier_of(isa)->rows[dtype].encode;
    if (kvb_tensor(tensor) == 1.0f) {
        encode(rows);
        return;
    }
    _Alignas(LINE) float divided[DIM_MAX];
    for (int64_t r = 0; r < rows->rows; r++) {
        kvb_encode one = *rows;
        for (int64_t d = 0; d < rows->dim; d++)
            divided[d] = rows->from[r * rows->from_stride + d] / tensor;
        one.from = divided;
        one.to += r * rows->to_stride;
        one.rows = 1;
        encode(&one);
    }
}
