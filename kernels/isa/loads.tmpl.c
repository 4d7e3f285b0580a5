/* Where the elements of a row lie: ELEMENT bytes hold BLOCK of them, one where rows are not packed. */

/* Elements from one prefetch to the next: a line of them, or about as much or less in two blocks. */
#define SPAN (BLOCK == 1 ? LINE / ELEMENT : 2 * BLOCK)

/* Byte of a row at which a block begins whose first element is `at`. */
#define OFFSET(at) (BLOCK == 1 ? (at) * ELEMENT : (int)((unsigned)(at) / BLOCK) * ELEMENT)

/* A vector of a row, from element `in` on behind the beginning of a block, `at`. It never reaches into the next block.
 * CODES_AT leaves out the scale that a packed row has at the beginning of a block; else both are as folded.tmpl.c says. */
#define LOADV CAT(v_load_, DTYPE)
#define LOAD(row, at, in) CAT(LOAD_, BLOCK)(row, at, in)
#define LOAD_1(row, at, in) LOADF((row) + OFFSET(at) + OFFSET(in))
#define LOAD_32(row, at, in) v_mul(CODES_AT(row, at, in), v_half((row) + OFFSET(at) + OFFSET(in)))
#define CODES_AT(row, at, in) CAT(CODES_AT_, BLOCK)(row, at, in)
#define CODES_AT_1 LOAD_1
#define CODES_AT_32(row, at, in) LOADV((row) + OFFSET(at) + OFFSET(in), (in) % BLOCK)

/* Values, from any element on. */
#define LOAD_ANY(row, at) CAT(LOAD_ANY_, BLOCK)(row, at)
#define LOAD_ANY_1(row, at) LOADV((row) + OFFSET(at))
#define LOAD_ANY_32(row, at) LOAD_32(row, (at) - (at) % BLOCK, (int)((at) % BLOCK))

/* *acc += a * b. What is used once need not be kept, and may be multiplied from memory: the fewer instructions to a line, the
 * more lines a core looks ahead. */
INLINE void fma_of(vf *acc, vf a, vf b, const bool once)
{
    if (once)
        *acc = v_fma(a, b, *acc);
    else
        v_fma_into(acc, a, b);
}

/* A cursor over rows of `dim` elements. */
#define AHEAD(tile, rows, dim) ahead_by(tile, rows, ((dim) + SPAN - 1) / SPAN, SPAN / BLOCK * ELEMENT)
