/* Moves on one thread: a cache grown in place, float32 matrices transposed, a row of logits put in
 * its position. */
#include <string.h>

#include "store/store.h"

/* ---- repack ---------------------------------------------------------------------------------- */

/* The planes follow one another as kvb_cache_bind lays them. */
static bool in_one_block(const kvb_cache *c)
{
    return c->v.rows == c->k.rows + c->k.bytes && c->k.scales == c->v.rows + c->v.bytes &&
           c->v.scales == c->k.scales + c->k.scale_bytes;
}

static int32_t check_pair(const kvb_cache *from, const kvb_cache *to)
{
    if (!kvb_same_rows(from, to))
        return kvb_fail(KVB_BAD_ARGUMENT, "to: layout, inner, dtype, scale, ring, batch, kv_heads "
                                          "and head_dim must be those of from");
    if (!kvb_layouts[from->layout].whole)
        return kvb_fail(KVB_BAD_ARGUMENT, "layout: repack moves whole heads, which %s has not",
                        kvb_word("layout", from->layout));
    if (kvb_tensor(from->k.tensor) != kvb_tensor(to->k.tensor) ||
        kvb_tensor(from->v.tensor) != kvb_tensor(to->v.tensor))
        return kvb_fail(KVB_BAD_ARGUMENT, "to: k_tensor and v_tensor must be those of from");
    if (to->capacity < from->capacity)
        return kvb_fail(KVB_BAD_ARGUMENT, "to: capacity %lld is below %lld, that of from",
                        (long long)to->capacity, (long long)from->capacity);
    if (to->k.head_stride < from->k.head_stride)
        return kvb_fail(
            KVB_BAD_ARGUMENT, "to: pad %lld lets rows move down; it must be at least %lld",
            (long long)to->pad, (long long)(from->k.head_stride - (to->k.head_stride - to->pad)));
    if (from->k.rows != to->k.rows || !in_one_block(from) || !in_one_block(to))
        return kvb_fail(KVB_BAD_ARGUMENT, "to: must be bound to the memory of from");
    for (int64_t seq = 0; seq < from->batch; seq++)
        if (from->lengths[seq] > from->capacity)
            return kvb_fail(KVB_BAD_ARGUMENT,
                            "lengths[%lld] is %lld: a ring that has wrapped cannot grow",
                            (long long)seq, (long long)from->lengths[seq]);
    return KVB_OK;
}

/* One plane: per sequence and head a stretch of live rows, or of the blocks of `block` rows that
 * they lie in, from the last to the first. */
static void move_plane(uint8_t *to, int64_t to_stride, const uint8_t *from, int64_t from_stride,
                       int64_t row, int64_t block, const kvb_cache *c)
{
    for (int64_t i = c->batch * c->kv_heads - 1; i >= 0; i--)
        memmove(to + i * to_stride, from + i * from_stride,
                (size_t)(round_up(c->lengths[i / c->kv_heads], block) * row));
}

/* No stretch moves down, and the last of all goes first: so none is written over before it has
 * moved. */
int32_t kvb_repack(const kvb_cache *from, const kvb_cache *to)
{
    TRY(kvb_check_cache(from));
    TRY(kvb_check_cache(to));
    TRY(check_pair(from, to));
    int64_t row = from->k.token_stride, scale = from->k.scale_token_stride;
    int64_t block = kvb_layouts[from->layout].transposed ? LANES : 1;
    move_plane(to->v.scales, to->k.scale_head_stride, from->v.scales, from->k.scale_head_stride,
               scale, 1, from);
    move_plane(to->k.scales, to->k.scale_head_stride, from->k.scales, from->k.scale_head_stride,
               scale, 1, from);
    move_plane(to->v.rows, to->k.head_stride, from->v.rows, from->k.head_stride, row, 1, from);
    move_plane(to->k.rows, to->k.head_stride, from->k.rows, from->k.head_stride, row, block, from);
    memmove(to->lengths, from->lengths, (size_t)from->batch * sizeof *from->lengths);
    return KVB_OK;
}

/* ---- transpose and logits -------------------------------------------------------------------- */

/* a * b * c floats in bytes, or a message that names the first factor. */
static int32_t check_bytes(const char *name, int64_t a, int64_t b, int64_t c, int64_t *bytes)
{
    if (__builtin_mul_overflow(a, b, bytes) || __builtin_mul_overflow(*bytes, c, bytes) ||
        __builtin_mul_overflow(*bytes, (int64_t)sizeof(float), bytes))
        return kvb_fail(KVB_BAD_ARGUMENT, "%s %lld: the size overflows", name, (long long)a);
    return KVB_OK;
}

int32_t kvb_transpose(const float *from, float *to, int64_t rows, int64_t heads, int64_t dim,
                      int32_t to_head_major)
{
    int64_t bytes = 0;
    TRY(kvb_check_given("from", from));
    TRY(kvb_check_given("to", to));
    TRY(kvb_check_range("rows", rows, 1, INT64_MAX));
    TRY(kvb_check_range("heads", heads, 1, INT64_MAX));
    TRY(kvb_check_range("dim", dim, 1, INT64_MAX));
    TRY(check_bytes("rows", rows, heads, dim, &bytes));
    uintptr_t a = (uintptr_t)from, b = (uintptr_t)to;
    if ((a > b ? a - b : b - a) < (uintptr_t)bytes)
        return kvb_fail(KVB_BAD_ARGUMENT, "to overlaps from; transpose needs two buffers");
    int64_t outer = to_head_major ? heads : rows, inner = to_head_major ? rows : heads;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++)
            memcpy(to + (i * inner + j) * dim, from + (j * outer + i) * dim,
                   (size_t)dim * sizeof *to);
    return KVB_OK;
}

int32_t kvb_logits(const float *row, float *matrix, int64_t position, int64_t rows, int64_t width)
{
    int64_t bytes = 0;
    TRY(kvb_check_given("row", row));
    TRY(kvb_check_given("matrix", matrix));
    TRY(kvb_check_range("rows", rows, 1, INT64_MAX));
    TRY(kvb_check_range("width", width, 1, INT64_MAX));
    TRY(check_bytes("rows", rows, width, 1, &bytes));
    TRY(kvb_check_range("position", position, 0, rows - 1));
    memmove(matrix + position * width, row, (size_t)width * sizeof *row);
    return KVB_OK;
}
