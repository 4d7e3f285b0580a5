/* round16: flash over f32 rows that are rounded to f16 as they are loaded, as a store to f16 would round them: to nearest
 * even, and to an infinity beyond its range. All else stays f32. So it answers as flash does on those rounded rows. */
#include "decode/decode.h"

void kvb_round16(const kvb_decode_task *task, kvb_state *state, kvb_walk *walk, double *ticks)
{
    kvb_flash(task, state, walk, ticks); /* the way of reading is the task's */
}
