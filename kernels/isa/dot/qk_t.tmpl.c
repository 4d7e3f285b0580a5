/* QK by products of bytes, of i8 rows whose K is transposed. A lane has four codes of a token:
 *
 *   cells of a block   | t0: c0 c1 c2 c3 | t1: c0 c1 c2 c3 | ...     16 tokens, a line
 *   q[h]               |     q0 q1 q2 q3 |     q0 q1 q2 q3 | ...     the same in all lanes
 *
 * The product of both is added to acc[h], then that of the next cells: nothing is added across
 * lanes. */

enum { BLOCK_SUMS = QK_ACC / (LANES / VL) }; /* most query rows for the scores of a block */

/* Do one cell of all tokens of one block or two: four codes of each token, times four codes of q in
 * all lanes. q of the next query row is `width` bytes further. */
INLINE void qkt_cell_bytes(vi *acc, const uint8_t *const *k, int64_t at, const int8_t *q,
                           const int q_rows, const int width, const int blocks)
{
    const int vectors = blocks * (LANES / VL);
    vi x[2 * (LANES / VL)];
    UNROLL_FOR (int v = 0; v < vectors; v++)
        x[v] = v_codes(k[v / (LANES / VL)] + at * LANES + v % (LANES / VL) * VB);
    UNROLL_FOR (int i = 0; i < q_rows; i++) {
        vi w = dot_four(q + i * width);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_dot_codes_into(&acc[INDEX(i, q_rows) * vectors + INDEX(v, vectors)], x[v], w,
                             DOT_BIAS);
    }
}

/* Do the LANES tokens of one block or two. With few query rows, a score has several sums, which
 * hide the latency of an addition. A cell of all tokens is a line. */
INLINE void qkt_blocks_bytes(const kvb_group *group, const uint8_t *const *k, prefetch *cursor,
                             int q_row, float *scores, const int q_rows, const int slots,
                             const int blocks, const int order)
{
    const int vectors = blocks * (LANES / VL), sums = q_rows * vectors;
    const int chains = QK_ACC / sums < 4 ? QK_ACC / sums : 4, dim = group->k_dim;
    vi acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < chains * sums; i++)
        acc[i] = v_none();
    UNROLL_FOR (int i = 0; i < sums; i++)
        acc[i] = v_set_int(group->prepared->first[q_row + i / vectors]);
    const int8_t *q = group->prepared->codes;
    int at = 0;
    for (; at + 4 * chains <= dim; at += 4 * chains)
        UNROLL_FOR (int c = 0; c < chains; c++) {
            UNROLL_FOR (int b = 0; b < blocks; b++)
                prefetch_with(cursor, k[b] + (at + 4 * c) * LANES, c, order);
            qkt_cell_bytes(acc + c % chains * sums, k, at + 4 * c,
                           q + dot_code(slots, q_row, at + 4 * c), q_rows, WIDTH_OF(slots), blocks);
        }
    for (; at < dim; at += 4) {
        UNROLL_FOR (int b = 0; b < blocks; b++)
            prefetch_with(cursor, k[b] + at * LANES, 0, order);
        qkt_cell_bytes(acc, k, at, q + dot_code(slots, q_row, at), q_rows, WIDTH_OF(slots), blocks);
    }
    UNROLL_FOR (int i = 0; i < q_rows * vectors; i++) {
        vf score = v_floats(dot_chained(&acc[i], chains, sums));
        v_store(scores + i / vectors * QUERY_SCORES + i % vectors * VL,
                v_mul(score, v_set1(group->prepared->step[q_row + i / vectors])));
    }
}

#define QKT_BLOCKS qkt_blocks_bytes
#define QKT_TILE qkt_tile_dot_i8
#define QKT_SUMS BLOCK_SUMS
#define QKT_CURSOR \
    (tile->v.block ? prefetch_block(&tile->k) : prefetch_from(&tile->k, group->k_dim))
#include "isa/dot/qk_t_tile.tmpl.c"
