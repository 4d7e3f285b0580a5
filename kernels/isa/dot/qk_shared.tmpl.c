/* QK by products of bytes for groups of 2, 4 and 8 heads where a tier has V_SHARED (AVX-512), of
 * i8 rows that are not transposed. All heads share each vector of q: a part of it is a head's,
 * and as many codes of a row are repeated once for each. Of two:
 *
 *   q         | h0: b0 ... b31 | h1: b0 ... b31 |    acc[t] grows by their products,
 *   row t     |     c0 ... c31 |     c0 ... c31 |    four of them to a lane
 *
 * So a row's sums for all heads end in one vector, and little is left to add across lanes; it is
 * that, and not the products, which takes the time where a vector is of one head. */

enum { PIECE = 4 }; /* tokens whose scores lie side by side */

/* The head whose scores are those from `lane` on in vector `i` of v_shared_sums(). */
INLINE int shared_head(int i, int lane, const int heads)
{
    const int part = lane / PIECE;
    if (heads == 8)
        return 2 * part + i;
    return heads == 4 ? part : part / 2;
}

/* LANES rows, a line of each at a time: biased once for all heads, in L1. */
INLINE void qk_shared_lines(vi *acc, kvb_places k, const int8_t *q, int dim, prefetch *cursor,
                            const int heads, const int order)
{
    for (int at = 0; at < dim; at += VB) {
        _Alignas(LINE) uint8_t lines[LANES * VB];
        UNROLL_FOR (int t = 0; t < LANES; t++)
            v_store_bytes(lines + t * VB, v_codes(kvb_row_at(k, t) + at));
        KEEP_IN_MEMORY(lines);
        UNROLL_FOR (int s = 0; s < heads; s++, q += VB) {
            vi w = v_load_bytes(q);
            UNROLL_FOR (int t = 0; t < LANES; t++) {
                if (t % heads == 0)
                    prefetch_line(cursor, order);
                v_dot_codes_into(&acc[t], v_repeated(lines + t * VB + s * VB / heads, heads), w,
                                 DOT_BIAS);
            }
        }
    }
}

/* LANES rows, each whole: two heads' q stay in registers where dim is the usual one. */
INLINE void qk_shared_rows(vi *acc, const kvb_tile *tile, int first, const int8_t *q, const int dim,
                           prefetch *cursor, const int heads)
{
    UNROLL_FOR (int t = 0; t < LANES; t++) {
        const uint8_t *row = row_of(&tile->k, first + t, ORDER_ROWS);
        for (int at = 0; at < dim; at += VB) {
            prefetch_with(cursor, row + at, 2 * t + at / LINE, ORDER_ROWS);
            UNROLL_FOR (int s = 0; s < heads; s++) {
                vi codes = v_biased(v_repeated(row + at + s * VB / heads, heads));
                v_dot_codes_into(&acc[t], codes, v_load_bytes(q + at * heads + s * VB), DOT_BIAS);
            }
        }
    }
}

INLINE void qk_tile_shared(const kvb_tile *tile, const kvb_group *group, prefetch *cursor,
                           float *scores, const int heads, const int order)
{
    const int vectors = heads == 8 ? 2 : 1; /* for PIECE tokens */
    float step[2 * VL], out[2 * VL];
    int32_t first[2 * VL];
    for (int i = 0; i < vectors * VL; i++) {
        step[i] = group->prepared->step[shared_head(i / VL, i % VL, heads)];
        first[i] = group->prepared->first[shared_head(i / VL, i % VL, heads)];
    }
    for (int t = 0; t < tile->count; t += LANES) {
        vi acc[LANES];
        UNROLL_FOR (int i = 0; i < LANES; i++)
            acc[i] = v_none();
        const int8_t *q = group->prepared->codes;
        prefetch_of(cursor, tile, &tile->k, t, order);
        if (order != ORDER_ROWS)
            qk_shared_lines(acc, kvb_rows_from(tile->k.rows, t), q, group->k_dim, cursor, heads,
                            order);
        else if (group->k_dim == USUAL)
            qk_shared_rows(acc, tile, t, q, USUAL, cursor, heads);
        else
            qk_shared_rows(acc, tile, t, q, group->k_dim, cursor, heads);
        UNROLL_FOR (int i = 0; i < LANES; i += PIECE) {
            vi sums[2];
            v_shared_sums(acc + i, heads, sums);
            UNROLL_FOR (int v = 0; v < vectors; v++) {
                vi whole = v_int_add(sums[v], v_load_ints(first + v * VL));
                v_store(out + v * VL, v_mul(v_floats(whole), v_load(step + v * VL)));
            }
            KEEP_IN_MEMORY(out);
            UNROLL_FOR (int l = 0; l < vectors * VL; l += heads == 2 ? 2 * PIECE : PIECE)
                memcpy(scores + shared_head(l / VL, l % VL, heads) * QUERY_SCORES + t + i, out + l,
                       PIECE * sizeof *out);
        }
    }
}
