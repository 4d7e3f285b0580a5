/* Lists which thread writes each row of a fill, and which threads read it in the decode after it.
 * No row is really written. */
#include "decode/twin.c"

static int32_t writer;
/* [2][KV heads * tokens], by the position of a row in its plane: 1 + the thread that wrote it, or
 * -1 if several did */
static int64_t *written;
static const kvb_cache *cache;

/* A fill never calls this. */
const kvb_tier *kvb_tier_of(int32_t isa) { return (void)isa, NULL; }
const kvb_tier *kvb_tier_with(int32_t isa, int32_t way) { return (void)isa, (void)way, NULL; }
int32_t kvb_check_decode(const kvb_decode *args, int32_t threads)
{
    return (void)args, (void)threads, KVB_OK;
}
int32_t kvb_traffic_twin(const kvb_decode *args, const kvb_plan *plan, kvb_traffic *traffic)
{
    return (void)args, (void)plan, (void)traffic, KVB_OK;
}

void kvb_encode_rows(int32_t isa, const kvb_plane *plane, int64_t head, bool of_one,
                     const kvb_encode *rows)
{
    (void)isa, (void)head, (void)of_one;
    const bool v = plane == &cache->v;
    int64_t *found = &written[(v ? cache->k.bytes / cache->k.row_bytes : 0) +
                              (rows->to - plane->rows) / plane->row_bytes];
    *found = *found ? -1 : 1 + writer;
}

/* `readers`: bits of threads, by the same positions, for K. */
__attribute__((visibility("default"))) int32_t filled(const kvb_decode *args, int32_t threads,
                                                      int64_t *to, int64_t *readers)
{
    _Alignas(LINE) float values[DIM_MAX];
    kvb_task *fill;
    kvb_plan plan;
    int32_t code = kvb_task_fill(args, threads, 1, &fill);
    code = code ? code : kvb_plan_make(args, threads, &plan);
    if (code)
        return code;
    written = to;
    cache = args->cache;
    for (writer = 0; writer < threads; writer++) {
        fill->work(fill, writer, values);
        for (int64_t u = plan.thread_units[writer]; u < plan.thread_units[writer + 1]; u++)
            for (int64_t t = 0; t < plan.units[u].count; t++)
                for (int64_t h = 0; h < plan.units[u].heads; h++) {
                    int64_t row;
                    kvb_offsets(cache, &cache->k, plan.units[u].seq, plan.units[u].head + h,
                                plan.units[u].first + t, 1, &row, NULL);
                    readers[row / cache->k.row_bytes] |= INT64_C(1) << writer;
                }
    }
    fill->dispose(fill);
    kvb_plan_free(&plan);
    free(fill);
    return KVB_OK;
}
