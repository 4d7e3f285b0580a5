/* QK by products of bf16, of 8-bit floats whose K is transposed. A cell has four codes of a token,
 * which are two lanes of words:
 *
 *   cells of a block   | t0: c0 c1 c2 c3       | t1: c0 c1 c2 c3       | ...   16 tokens, a line
 *   their words        | t0: x0 x1 | t0: x2 x3 | t1: x0 x1 | t1: x2 x3 | ...   CELL_VECTORS
 *   q[h]               |     q0 q1 |     q2 q3 |     q0 q1 |     q2 q3 | ...   repeated
 *
 * The products of both are added to acc[h]. Neighbours are added at the end. */

/* Multiply one cell of all tokens of one block or two, `at` bytes from its start, by four words of
 * each query row. In the last cell only `keep` codes are elements; the others may be anything. */
INLINE void CAT(qkt_cell_, DTYPE)(vf *acc, const uint8_t *const *k, int64_t at, const uint16_t *q,
                                  const vcodes *codes, const int q_rows, const int part,
                                  const int blocks, int keep)
{
    const int vectors = blocks * CELL_VECTORS;
    vi x[2 * CELL_VECTORS];
    UNROLL_FOR (int v = 0; v < vectors; v += 2) {
        vi cells =
            v_load_bytes((const int8_t *)k[v / CELL_VECTORS] + at + v % CELL_VECTORS / 2 * VB);
        if (keep < 4)
            cells = v_int_and(cells, v_set_int((1 << 8 * keep) - 1));
        floats_looked_up(codes, cells, x + v);
    }
    UNROLL_FOR (int h = 0; h < q_rows; h++) {
        const vi w = v_set_eight(q + h * part);
        UNROLL_FOR (int v = 0; v < vectors; v++)
            v_dot16_into(&acc[INDEX(h, q_rows) * vectors + v], x[v], w);
    }
}

/* Do the LANES tokens of one block or two. With few query rows, a score has several sums, which
 * hide the latency of an addition. Their number is the same if blocks are paired. */
INLINE void CAT(qkt_cells_, DTYPE)(const kvb_group *group, const uint8_t *const *k,
                                   prefetch *cursor, int q_row, float *scores, const int q_rows,
                                   const int slots, const int blocks, const int order)
{
    const int vectors = blocks * CELL_VECTORS, sums = q_rows * vectors;
    const int most = QK_ACC / ((q_rows > 2 ? 2 : 1) * q_rows * CELL_VECTORS);
    const int chains = most > 4 ? 4 : most > 1 ? most : 1;
    const int dim = group->k_dim, part = PART_WORDS(slots);
    const vcodes codes = CAT(codes_of_, DTYPE)();
    vf acc[QK_ACC];
    UNROLL_FOR (int i = 0; i < chains * sums; i++)
        acc[i] = v_zero();
    int at = 0;
    for (; at + SIDE <= dim; at += SIDE) {
        const uint16_t *q = floats_square(group, q_row, slots, at);
        UNROLL_FOR (int in = 0; in < SIDE; in += 4) {
            UNROLL_FOR (int b = 0; b < blocks; b++)
                prefetch_with(cursor, k[b] + (at + in) * LANES, in / 4, order);
            CAT(qkt_cell_, DTYPE)(acc + in / 4 % chains * sums, k, (at + in) * LANES,
                                  q + floats_cell(slots, in), &codes, q_rows, part, blocks, 4);
        }
    }
    const uint16_t *q = floats_square(group, q_row, slots, at);
    for (int in = 0; at + in < dim; in += 4) {
        UNROLL_FOR (int b = 0; b < blocks; b++)
            prefetch_with(cursor, k[b] + (at + in) * LANES, 0, order);
        CAT(qkt_cell_, DTYPE)(acc, k, (at + in) * LANES, q + floats_cell(slots, in), &codes, q_rows,
                              part, blocks, dim - at - in);
    }
    UNROLL_FOR (int i = 0; i < sums; i += 2) {
        vf low = acc[i], high = acc[i + 1];
        UNROLL_FOR (int c = 1; c < chains; c++) {
            low = v_add(low, acc[c * sums + i]);
            high = v_add(high, acc[c * sums + i + 1]);
        }
        v_store(scores + i / vectors * QUERY_SCORES + i % vectors / 2 * VL,
                v_neighbours(low, high));
    }
}

#define QKT_BLOCKS CAT(qkt_cells_, DTYPE)
#define QKT_TILE CAT(qkt_floats_tile_, DTYPE)
#define QKT_SUMS CELL_SUMS
#define QKT_CURSOR prefetch_block(&tile->k)
#include "isa/dot/qk_t_tile.tmpl.c"

enum { CAT(floats_sums_, DTYPE) = CELL_SUMS };
