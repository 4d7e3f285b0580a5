#include "cache/cache.h"

/* An odd number of lines: rows of a token then fall into different cache sets and banks. */
int64_t kvb_cache_pad(void) { return 5 * LINE; }

int32_t kvb_cache_plan(kvb_cache *c)
{
    TRY(kvb_check_shape(c));
    c->table_stride =
        kvb_layouts[c->layout].paged ? (c->capacity + c->block_tokens - 1) / c->block_tokens : 0;
    c->k.dim = c->head_dim;
    c->v.dim = c->v_dim ? c->v_dim : c->head_dim;
    c->k.cell = kvb_cell(c->layout, c->k.dtype, KVB_K);
    c->v.cell = kvb_cell(c->layout, c->v.dtype, KVB_V);
    kvb_layout_plan(c, &c->k);
    kvb_layout_plan(c, &c->v);
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
