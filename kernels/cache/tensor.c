/* Scales of a whole tensor: what a stored code stands for is the code times its plane's, for formats whose codes are floats
 * of 8 bits. Decode folds K's into the scale of the scores and V's into the output, so no tile knows of them. */
#include <math.h>

#include "cache/cache.h"

bool kvb_has_tensor(int32_t dtype) { return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2; }

float kvb_tensor(float scale) { return scale == 0.0f ? 1.0f : scale; }

static int32_t check(const kvb_cache *c, const char *name, float scale)
{
    if (scale == 0.0f)
        return KVB_OK;
    if (!(scale > 0.0f && isfinite(scale)))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %g; it must be finite and positive, or 0 for none", name, (double)scale);
    if (!kvb_has_tensor(c->k.dtype))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s: the dtype %s has no scale of the whole tensor", name,
                        kvb_word("dtype", c->k.dtype));
    return KVB_OK;
}

int32_t kvb_check_tensor(const kvb_cache *c)
{
    int32_t code = check(c, "k.tensor", c->k.tensor);
    return code ? code : check(c, "v.tensor", c->v.tensor);
}
