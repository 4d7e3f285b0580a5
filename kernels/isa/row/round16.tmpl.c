/* round16: f32 rows whose elements are rounded to f16 when they are loaded. It cannot store rows.
 */

/* The compiler keeps the f16 in a register. */
static inline vf v_load_round16(const uint8_t *p)
{
    uint8_t halves[2 * VL];
    v_store_f16(halves, v_load_f32(p));
    return v_load_f16(halves);
}

#define DTYPE round16
#define ELEMENT 4
#define LOADED_ONLY
#include "isa/row/row_kernel.tmpl.c"
