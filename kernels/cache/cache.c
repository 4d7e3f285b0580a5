#include "cache/cache.h"

/* An odd number of lines: heads at the same token then fall into different cache sets and banks. */
int64_t kvb_cache_pad(void) { return 5 * LINE; }

int32_t kvb_cache_plan(kvb_cache *c)
{
    int32_t code = kvb_check_shape(c);
    if (code)
        return code;
    c->row_bytes = kvb_row(c->dtype, c->head_dim);
    c->table_stride = 0;
    kvb_layouts[c->layout].plan(c);
    /* every plane starts on a line */
    c->plane_bytes = round_up(c->plane_bytes, LINE);
    c->scale_plane_bytes = round_up(c->scale_plane_bytes, LINE);
    c->bytes = 2 * (c->plane_bytes + c->scale_plane_bytes);
    return KVB_OK;
}

int32_t kvb_cache_bind(kvb_cache *c, void *memory)
{
    if (!c)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache is null");
    if (c->bytes <= 0)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache is not planned");
    if (!memory || (uintptr_t)memory % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "memory must be aligned to %d bytes and not null", LINE);
    c->k = memory;
    c->v = c->k + c->plane_bytes;
    c->k_scale = c->v + c->plane_bytes;
    c->v_scale = c->k_scale + c->scale_plane_bytes;
    return KVB_OK;
}
