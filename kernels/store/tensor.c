/* Scales of a whole tensor: what a stored code stands for is the code times its plane's, for formats whose codes are floats
 * of 8 bits. Decode folds K's into the scale of the scores and V's into the output, so no tile knows of them. */
#include <math.h>

#include "base/core.h"

bool kvb_has_tensor(int32_t dtype) { return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2; }

float kvb_tensor(float scale) { return scale == 0.0f ? 1.0f : scale; }

static int32_t check(const kvb_cache *c, const char *name, float scale)
{
    if (scale == 0.0f)
        return KVB_OK;
    if (!(scale > 0.0f && isfinite(scale)))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %g; it must be finite and positive, or 0 for none", name, (double)scale);
    if (!kvb_has_tensor(c->dtype))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s: the dtype %s has no scale of the whole tensor", name,
                        kvb_word("dtype", c->dtype));
    return KVB_OK;
}

int32_t kvb_check_tensor(const kvb_cache *c)
{
    int32_t code = check(c, "k_tensor", c->k_tensor);
    return code ? code : check(c, "v_tensor", c->v_tensor);
}

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
