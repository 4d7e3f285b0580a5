/* The sums of a tier's twin and read probe are those of the scalar tier. */
#include <string.h>

#include "check.h"

enum { DIM = 80, V_DIM = 37, KV_HEADS = 2, Q_HEADS = 4, CAPACITY = 330 };

static uint32_t sum_of(kvb_team *team, int32_t code, kvb_task *task)
{
    kvb_run_times times;
    uint32_t sum = UINT32_MAX;
    memset(&times, 0, sizeof times);
    if (expect(!code, "task: %s", kvb_message()) &&
        expect(!kvb_run(team, &task, 1, 1, NULL, &times), "run: %s", kvb_message()))
        expect(!kvb_task_sum(task, &sum), "sum: %s", kvb_message());
    kvb_task_free(task);
    return sum;
}

/* Fill a cache with any bytes, but with scales that are numbers. */
static void fill(rig *r, const float *source)
{
    uint8_t *rows = r->arena.base;
    for (int64_t i = 0; i < r->cache.bytes; i++)
        rows[i] = (uint8_t)(i * 167 + i / 251);
    kvb_store put = {.cache = &r->cache,
                     .k = source,
                     .v = source,
                     .tokens = CAPACITY,
                     .isa = word_of("isa", "scalar")};
    expect(!run_bulk(&put, 1), "bulk: %s", kvb_message());
    r->lengths[0] = CAPACITY;
}

/* If V has another dtype than K, it also has another width and other scales. */
static void check_twins(kvb_team *team, int32_t layout, int32_t dtype, int32_t v_dtype,
                        const float *source)
{
    rig r;
    const bool alike = v_dtype == dtype;
    kvb_cache shape = {.layout = layout,
                       .k = {.dtype = dtype, .scale = dtype % 2},
                       .v = {.dtype = v_dtype, .scale = (dtype + !alike) % 2},
                       .batch = 1,
                       .kv_heads = KV_HEADS,
                       .head_dim = DIM,
                       .v_dim = alike ? DIM : V_DIM,
                       .capacity = CAPACITY,
                       .block_tokens = 33,
                       .blocks = 10,
                       .pad = kvb_cache_pad()};
    if (!rig_open(&r, shape, 1))
        return;
    fill(&r, source);
    float q[Q_HEADS * DIM] = {0}, out[Q_HEADS * DIM];
    for (int32_t schedule = 0; kvb_word("schedule", schedule); schedule++) {
        kvb_decode args = {.cache = &r.cache,
                           .q = q,
                           .out = out,
                           .q_heads = Q_HEADS,
                           .schedule = schedule,
                           .window = 300};
        kvb_task *task = NULL;
        args.isa = word_of("isa", "scalar");
        int32_t code = kvb_task_twin(&args, 1, &task);
        const uint32_t right = sum_of(team, code, task);
        for (int i = 0; tiers[i] >= 0; i++) {
            args.isa = tiers[i];
            code = kvb_task_twin(&args, 1, &task);
            const uint32_t found = sum_of(team, code, task);
            expect(found == right, "%s twin.%s.%s+%s by %s: sum %u, not %u",
                   kvb_word("isa", tiers[i]), kvb_word("layout", layout), kvb_word("dtype", dtype),
                   kvb_word("dtype", v_dtype), kvb_word("schedule", schedule), found, right);
        }
    }
    rig_close(&r);
}

static void check_reads(kvb_team *team, const float *source)
{
    kvb_probe args = {.op = word_of("op", "read"),
                      .a = (void *)(uintptr_t)source,
                      .bytes = 4096 + 7 * 64,
                      .steps = 2};
    for (args.distance = 0; args.distance <= 2048; args.distance += 2048) {
        kvb_task *task = NULL;
        args.isa = word_of("isa", "scalar");
        int32_t code = kvb_task_probe(&args, 1, &task);
        const uint32_t right = sum_of(team, code, task);
        for (int i = 0; tiers[i] >= 0; i++) {
            args.isa = tiers[i];
            code = kvb_task_probe(&args, 1, &task);
            const uint32_t found = sum_of(team, code, task);
            expect(found == right, "%s read: sum %u, not %u", kvb_word("isa", tiers[i]), found,
                   right);
        }
    }
}

/* Sum the words of lines first to end, in a buffer of `lines` lines that wraps. */
static uint32_t words_of(const uint16_t *buffer, int64_t lines, int64_t first, int64_t end)
{
    uint32_t sum = 0;
    for (int64_t line = first; line < end; line++)
        for (int i = 0; i < 32; i++)
            sum += buffer[line % lines * 32 + i];
    return sum & 0xffff;
}

/* Each pass goes on where the last one stopped. The memory faults on both sides. */
static void check_piece(const kvb_probe *args, int32_t threads)
{
    enum { PASSES = 7 };
    const int64_t lines = args->bytes / 64, piece = args->piece / 64;
    kvb_task *task = NULL;
    uint32_t sum = 0;
    if (!expect(!kvb_task_probe(args, threads, &task), "piece: %s", kvb_message()))
        return;
    for (int64_t pass = 1; pass <= PASSES; pass++) {
        expect(!run_tasks(&task, 1, 1, NULL, threads) && !kvb_task_sum(task, &sum), "piece: %s",
               kvb_message());
        const uint32_t right = words_of(args->a, lines, 0, pass * piece);
        expect(sum == right, "%s: pass %d of %d lines of %d on %d threads: sum %u, not %u",
               kvb_word("isa", args->isa), (int)pass, (int)piece, (int)lines, threads, sum, right);
    }
    kvb_task_free(task);
}

static void check_pieces(void)
{
    static const int64_t lines[] = {1, 7, 64, 129}, pieces[] = {1, 3, 63, 129, 300};
    for (int l = 0; l < 4; l++) {
        kvb_arena arena;
        if (!expect(!kvb_arena_open(lines[l] * 64, 0, 1 + l % 2, &arena), "%s", kvb_message()))
            return;
        noise((float *)(void *)arena.base, lines[l] * 16, 22);
        kvb_probe args = {.op = word_of("op", "read"), .a = arena.base, .bytes = lines[l] * 64};
        for (int p = 0; p < 5; p++)
            for (int i = 0; tiers[i] >= 0; i++)
                for (int32_t threads = 1; threads <= 4; threads++) {
                    args.piece = pieces[p] * 64, args.isa = tiers[i];
                    args.distance = threads % 2 * 2048, args.schedule = (i + p) % 4;
                    check_piece(&args, threads);
                }
        kvb_arena_close(&arena);
    }
}

void check_sums(void)
{
    static _Alignas(64) float source[CAPACITY * KV_HEADS * DIM];
    kvb_team *team = NULL;
    noise(source, CAPACITY * KV_HEADS * DIM, 21);
    if (!expect(!kvb_team_open(NULL, 1, &team), "team: %s", kvb_message()))
        return;
    for (int32_t layout = 0; kvb_word("layout", layout); layout++)
        for (int32_t dtype = 0; kvb_word("dtype", dtype); dtype++)
            if (kvb_reads(0, layout, dtype, KVB_K) >= 0) {
                const int32_t other = kvb_word("dtype", dtype + 1) ? dtype + 1 : 0;
                check_twins(team, layout, dtype, dtype, source);
                if (kvb_reads(0, layout, other, KVB_V) >= 0)
                    check_twins(team, layout, dtype, other, source);
            }
    check_reads(team, source);
    check_pieces();
    kvb_team_close(team);
}
