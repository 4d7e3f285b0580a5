/* QK of transposed K, for the dtypes that have cells in cache/transposed.c. */
#define WHOLE(x, e) (x)

/* Whether two blocks may be read side by side. More than two query rows do so if registers hold the
 * sums: a load of q then serves both blocks, and loads limit the time of such scores. */
INLINE bool pairs_blocks(const kvb_tile *tile, const int order)
{
    return order == ORDER_RUNS ? tile->k.schedule->run_rows >= 2 * LANES : order != ORDER_ROWS;
}

#define DTYPE f32
#define PLAIN 1
#define ELEMENTS 1
#define CELL 4
#define CELL_VECTOR vf
#define CELLS v_load_f32
#define ELEMENT_OF WHOLE
#define UNIT 1.0f
#include "isa/qk/qk_t.tmpl.c"

#define DTYPE f16
#define PLAIN 0
#define ELEMENTS 1
#define CELL 2
#define CELL_VECTOR vf
#define CELLS v_load_f16
#define ELEMENT_OF WHOLE
#define UNIT 1.0f
#include "isa/qk/qk_t.tmpl.c"

#define DTYPE bf16
#define PLAIN 0
#define ELEMENTS 2
#define CELL 4
#define CELL_VECTOR vcells
#define CELLS v_load_cells
#define ELEMENT_OF v_cell_bf16
#define UNIT 1.0f
#include "isa/qk/qk_t.tmpl.c"

#define DTYPE i8
#define PLAIN 0
#define ELEMENTS 4
#define CELL 4
#define CELL_VECTOR vcells
#define CELLS v_load_cells
#define ELEMENT_OF v_cell_i8
#define UNIT 0x1p-24f
#include "isa/qk/qk_t.tmpl.c"

#undef WHOLE
