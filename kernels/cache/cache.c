#include "cache/cache.h"

/* An odd number of lines: heads at the same token then fall into different cache sets and banks. */
int64_t kvb_cache_pad(void) { return 5 * LINE; }

/* Rows, and scales, begin on a line. */
static void plan(kvb_cache *c, kvb_plane *plane)
{
    plane->row_bytes = kvb_row(plane->dtype, c->head_dim);
    kvb_layouts[c->layout].plan(c, plane);
    plane->bytes = round_up(plane->bytes, LINE);
    plane->scale_bytes = round_up(plane->scale_bytes, LINE);
}

int32_t kvb_cache_plan(kvb_cache *c)
{
    TRY(kvb_check_shape(c));
    c->table_stride = 0;
    plan(c, &c->k);
    plan(c, &c->v);
    c->bytes = c->k.bytes + c->v.bytes + c->k.scale_bytes + c->v.scale_bytes;
    return KVB_OK;
}

int32_t kvb_cache_bind(kvb_cache *c, void *memory)
{
    TRY(kvb_check_given("cache", c));
    if (c->bytes <= 0)
        return kvb_fail(KVB_BAD_ARGUMENT, "cache is not planned");
    TRY(kvb_check_aligned("memory", memory));
    c->k.rows = memory;
    c->v.rows = c->k.rows + c->k.bytes;
    c->k.scales = c->v.rows + c->v.bytes;
    c->v.scales = c->k.scales + c->k.scale_bytes;
    return KVB_OK;
}
