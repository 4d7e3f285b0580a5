/* Where rows are. A layout is a choice of strides. Paged layouts look up each block in a table,
 * too. / */
#include "cache/cache.h"

const kvb_layout kvb_layouts[LAYOUTS] = {
    [LAYOUT_HEAD] = {.whole = true},
    [LAYOUT_POSITION] = {.by_token = true},
    [LAYOUT_PAGED] = {.paged = true},
    [LAYOUT_BLOCKT] = {.whole = true, .transposed = true},
    [LAYOUT_BLOCK16] = {.whole = true, .transposed = true, .quads = true},
};

/* A sequence, or a block of a paged cache, is a matrix of rows [heads][tokens] or [tokens][heads].
 * Scales are a second matrix of the same form. In transposed layouts V and scales have whole
 * blocks, too, so that all have the same slots. */
void kvb_layout_plan(const kvb_cache *c, kvb_plane *p)
{
    const kvb_layout *l = &kvb_layouts[c->layout];
    const bool by_token = l->paged ? c->inner == INNER_TOKEN : l->by_token;
    const int64_t tokens =
        l->paged ? c->block_tokens : round_up(c->capacity, l->transposed ? LANES : 1);
    const int64_t count = l->paged ? c->blocks : c->batch, pad = l->whole ? c->pad : 0;
    const int64_t row = p->row_bytes = kvb_row(p->dtype, p->dim);
    const int64_t scale = kvb_scaled(p) ? kvb_scale_bytes[p->scale] : 0;
    p->token_stride = by_token ? c->kv_heads * row : row;
    p->head_stride = by_token ? row : tokens * row + pad;
    p->seq_stride = c->kv_heads * (tokens * row + pad);
    p->scale_token_stride = by_token ? c->kv_heads * scale : scale;
    p->scale_head_stride = by_token ? scale : tokens * scale;
    p->scale_seq_stride = c->kv_heads * tokens * scale;
    p->bytes = round_up(count * p->seq_stride, LINE); /* the next plane begins on a line */
    p->scale_bytes = round_up(count * p->scale_seq_stride, LINE);
}

/* If the layout transposes the plane, the dtype must have cells. */
bool kvb_layout_has(int32_t layout, int32_t dtype, int32_t plane)
{
    const kvb_layout *l = &kvb_layouts[layout];
    return !(plane == KVB_K ? l->transposed : l->quads) || kvb_cell(layout, dtype, plane);
}

bool kvb_planes_alike(const kvb_cache *c)
{
    return c->k.row_bytes == c->v.row_bytes && c->k.token_stride == c->v.token_stride &&
           c->k.head_stride == c->v.head_stride && c->k.seq_stride == c->v.seq_stride &&
           (c->k.scale_token_stride == c->v.scale_token_stride || c->k.channel);
}

bool kvb_heads_inner(const kvb_cache *c)
{
    return c->kv_heads > 1 && c->k.head_stride < c->k.token_stride;
}

kvb_stretch kvb_stretch_of(const kvb_cache *c, const kvb_plane *p, int64_t seq, int64_t head,
                           int64_t token)
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
        .row =
            place < 0 ? -1 : place * p->seq_stride + head * p->head_stride + in * p->token_stride,
        .scale =
            place * p->scale_seq_stride + head * p->scale_head_stride + in * p->scale_token_stride,
    };
}

void kvb_offsets(const kvb_cache *c, const kvb_plane *p, int64_t seq, int64_t head, int64_t first,
                 int64_t count, int64_t *rows, int64_t *scales)
{
    for (int64_t done = 0; done < count;) {
        const kvb_stretch s = kvb_stretch_of(c, p, seq, head, first + done);
        const int64_t begin = done, end = at_most(count, done + s.count),
                      step = s.row < 0 ? 0 : p->token_stride;
        for (int64_t at = s.row; done < end; done++, at += step)
            rows[done] = at;
        if (scales && s.row >= 0)
            for (int64_t i = begin, at = s.scale; i < end; i++, at += p->scale_token_stride)
                scales[i] = at;
    }
}
