/* QK by products of bytes for groups of 2, 4 and 8 query rows if a tier has V_SHARED (AVX-512), of
 * i8 rows that are not transposed. All query rows share each vector of q: each has a part of it,
 * and the codes of a row are repeated for each part. For two query rows:
 *
 *   q         | h0: b0 ... b31 | h1: b0 ... b31 |    acc[t] += their products,
 *   row t     |     c0 ... c31 |     c0 ... c31 |    four in a lane
 *
 * So the sums of a row for all query rows are in one vector, and little is left to add across
 * lanes. With one query row in a vector, adding across lanes takes more time than the products. */

enum { PIECE = 4 }; /* tokens whose scores are side by side */

/* Return the query row of the scores from `lane` on in vector `i` of v_shared_sums(). */
INLINE int shared_q_row(int i, int lane, const int q_rows)
{
    const int part = lane / PIECE;
    if (q_rows == 8)
        return 2 * part + i;
    return q_rows == 4 ? part : part / 2;
}

/* Do LANES rows, a line of each at a time. The bias is added once for all query rows, in L1. */
INLINE void qk_shared_lines(vi *acc, kvb_places k, const int8_t *q, int dim, prefetch *cursor,
                            const int q_rows, const int order)
{
    for (int at = 0; at < dim; at += VB) {
        _Alignas(LINE) uint8_t lines[LANES * VB];
        UNROLL_FOR (int t = 0; t < LANES; t++)
            v_store_bytes(lines + t * VB, v_codes(kvb_row_at(k, t) + at));
        KEEP_IN_MEMORY(lines);
        UNROLL_FOR (int s = 0; s < q_rows; s++, q += VB) {
            vi w = v_load_bytes(q);
            UNROLL_FOR (int t = 0; t < LANES; t++) {
                if (t % q_rows == 0)
                    prefetch_line(cursor, order);
                v_dot_codes_into(&acc[t], v_repeated(lines + t * VB + s * VB / q_rows, q_rows), w,
                                 DOT_BIAS);
            }
        }
    }
}

/* Do LANES whole rows. q of two query rows stays in registers if dim is the usual one. */
INLINE void qk_shared_rows(vi *acc, const kvb_tile *tile, int first, const int8_t *q, const int dim,
                           prefetch *cursor, const int q_rows)
{
    UNROLL_FOR (int t = 0; t < LANES; t++) {
        const uint8_t *row = row_of(&tile->k, first + t, ORDER_ROWS);
        for (int at = 0; at < dim; at += VB) {
            prefetch_with(cursor, row + at, 2 * t + at / LINE, ORDER_ROWS);
            UNROLL_FOR (int s = 0; s < q_rows; s++) {
                vi codes = v_biased(v_repeated(row + at + s * VB / q_rows, q_rows));
                v_dot_codes_into(&acc[t], codes, v_load_bytes(q + at * q_rows + s * VB), DOT_BIAS);
            }
        }
    }
}

INLINE void qk_tile_shared(const kvb_tile *tile, const kvb_group *group, prefetch *cursor,
                           float *scores, const int q_rows, const int order)
{
    const int vectors = q_rows == 8 ? 2 : 1; /* for PIECE tokens */
    float step[2 * VL], out[2 * VL];
    int32_t first[2 * VL];
    for (int i = 0; i < vectors * VL; i++) {
        step[i] = group->prepared->step[shared_q_row(i / VL, i % VL, q_rows)];
        first[i] = group->prepared->first[shared_q_row(i / VL, i % VL, q_rows)];
    }
    for (int t = 0; t < tile->count; t += LANES) {
        vi acc[LANES];
        UNROLL_FOR (int i = 0; i < LANES; i++)
            acc[i] = v_none();
        const int8_t *q = group->prepared->codes;
        prefetch_of(cursor, tile, &tile->k, t, order);
        if (order != ORDER_ROWS)
            qk_shared_lines(acc, kvb_rows_from(tile->k.rows, t), q, group->k_dim, cursor, q_rows,
                            order);
        else if (group->k_dim == USUAL)
            qk_shared_rows(acc, tile, t, q, USUAL, cursor, q_rows);
        else
            qk_shared_rows(acc, tile, t, q, group->k_dim, cursor, q_rows);
        UNROLL_FOR (int i = 0; i < LANES; i += PIECE) {
            vi sums[2];
            v_shared_sums(acc + i, q_rows, sums);
            UNROLL_FOR (int v = 0; v < vectors; v++) {
                vi whole = v_int_add(sums[v], v_load_ints(first + v * VL));
                v_store(out + v * VL, v_mul(v_floats(whole), v_load(step + v * VL)));
            }
            KEEP_IN_MEMORY(out);
            UNROLL_FOR (int l = 0; l < vectors * VL; l += q_rows == 2 ? 2 * PIECE : PIECE)
                memcpy(scores + shared_q_row(l / VL, l % VL, q_rows) * QUERY_SCORES + t + i,
                       out + l, PIECE * sizeof *out);
        }
    }
}
