/* Where rows lie. A layout is a choice of strides; walks differ only in whether a table stands between. */
#include "cache/cache.h"

/* Strides of a [heads][tokens] or [tokens][heads] arrangement of rows of `row` bytes. */
static void by_head(int64_t row, int64_t tokens, int64_t pad, int64_t *token, int64_t *head)
{
    *token = row;
    *head = tokens * row + pad;
}

static void by_token(int64_t row, int64_t heads, int64_t *token, int64_t *head)
{
    *token = heads * row;
    *head = row;
}

/* Scales follow their rows: the same arrangement with `scale` bytes in place of a row. */
static int64_t scale_bytes(const kvb_plane *p) { return kvb_formats[p->dtype].scaled ? kvb_scale_bytes[p->scale] : 0; }

/* Heads one after another, each with rows for so many tokens. */
static void plan_heads(const kvb_cache *c, kvb_plane *p, int64_t tokens)
{
    by_head(p->row_bytes, tokens, c->pad, &p->token_stride, &p->head_stride);
    by_head(scale_bytes(p), tokens, 0, &p->scale_token_stride, &p->scale_head_stride);
    p->seq_stride = c->kv_heads * p->head_stride;
    p->scale_seq_stride = c->kv_heads * p->scale_head_stride;
    p->bytes = c->batch * p->seq_stride;
    p->scale_bytes = c->batch * p->scale_seq_stride;
}

static void plan_head(kvb_cache *c, kvb_plane *p) { plan_heads(c, p, c->capacity); }

/* K in whole blocks; V and scales have room for as many tokens, so that all have the same places. */
static void plan_blockt(kvb_cache *c, kvb_plane *p) { plan_heads(c, p, round_up(c->capacity, LANES)); }

static void plan_position(kvb_cache *c, kvb_plane *p)
{
    by_token(p->row_bytes, c->kv_heads, &p->token_stride, &p->head_stride);
    by_token(scale_bytes(p), c->kv_heads, &p->scale_token_stride, &p->scale_head_stride);
    p->seq_stride = c->capacity * p->token_stride;
    p->scale_seq_stride = c->capacity * p->scale_token_stride;
    p->bytes = c->batch * p->seq_stride;
    p->scale_bytes = c->batch * p->scale_seq_stride;
}

/* The "sequence" stride of a paged cache is the stride of a block. */
static void plan_paged(kvb_cache *c, kvb_plane *p)
{
    if (c->inner == INNER_HEAD) {
        by_head(p->row_bytes, c->block_tokens, 0, &p->token_stride, &p->head_stride);
        by_head(scale_bytes(p), c->block_tokens, 0, &p->scale_token_stride, &p->scale_head_stride);
    } else {
        by_token(p->row_bytes, c->kv_heads, &p->token_stride, &p->head_stride);
        by_token(scale_bytes(p), c->kv_heads, &p->scale_token_stride, &p->scale_head_stride);
    }
    p->seq_stride = c->kv_heads * c->block_tokens * p->row_bytes;
    p->scale_seq_stride = c->kv_heads * c->block_tokens * scale_bytes(p);
    p->bytes = c->blocks * p->seq_stride;
    p->scale_bytes = c->blocks * p->scale_seq_stride;
    c->table_stride = (c->capacity + c->block_tokens - 1) / c->block_tokens;
}

const kvb_layout kvb_layouts[LAYOUTS] = {
    [LAYOUT_HEAD] = {.plan = plan_head, .whole = true},
    [LAYOUT_POSITION] = {.plan = plan_position},
    [LAYOUT_PAGED] = {.plan = plan_paged, .paged = true},
    [LAYOUT_BLOCKT] = {.plan = plan_blockt, .whole = true, .transposed = true},
};

bool kvb_layout_has(int32_t layout, int32_t dtype) { return !kvb_layouts[layout].transposed || kvb_cell_bytes(dtype); }

bool kvb_heads_inner(const kvb_cache *c) { return c->kv_heads > 1 && c->k.head_stride < c->k.token_stride; }

kvb_stretch kvb_stretch_of(const kvb_cache *c, int64_t seq, int64_t head, int64_t token)
{
    int64_t slot = c->ring ? token % c->capacity : token;
    int64_t place = seq, in = slot, end = c->capacity;
    if (kvb_layouts[c->layout].paged) {
        place = c->table[seq * c->table_stride + slot / c->block_tokens];
        in = slot % c->block_tokens;
        end = at_most(slot - in + c->block_tokens, c->capacity);
    }
    return (kvb_stretch){
        .count = end - slot,
        .row = place < 0 ? -1 : place * c->k.seq_stride + head * c->k.head_stride + in * c->k.token_stride,
        .scale = place * c->k.scale_seq_stride + head * c->k.scale_head_stride + in * c->k.scale_token_stride,
    };
}

void kvb_offsets(const kvb_cache *c, int64_t seq, int64_t head, int64_t first, int64_t count, int64_t *rows,
                 int64_t *scales)
{
    for (int64_t done = 0; done < count;) {
        const kvb_stretch s = kvb_stretch_of(c, seq, head, first + done);
        const int64_t begin = done, end = at_most(count, done + s.count), step = s.row < 0 ? 0 : c->k.token_stride;
        for (int64_t at = s.row; done < end; done++, at += step)
            rows[done] = at;
        if (scales && s.row >= 0)
            for (int64_t i = begin, at = s.scale; i < end; i++, at += c->k.scale_token_stride)
                scales[i] = at;
    }
}
