/* Guard pages fault at the first byte outside, and no kernel touches them. Each plane of a cache
 * has its own. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Whether reading this byte ends a process. */
static bool faults(const volatile uint8_t *at)
{
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        _exit(*at == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void check_arena(int64_t bytes)
{
    for (int32_t guard = 1; guard <= 2; guard++) {
        kvb_arena arena;
        if (!expect(!kvb_arena_open(bytes, 0, guard, &arena), "arena: %s", kvb_message()))
            return;
        memset(arena.base, 0, (size_t)bytes);
        expect((uintptr_t)arena.base % 64 == 0, "guarded arena of %ld bytes is not aligned",
               (long)bytes);
        expect(!faults(arena.base) && !faults(arena.base + bytes - 1),
               "arena of %ld bytes faults inside", (long)bytes);
        const uint8_t *outside = guard == 1 ? arena.base + (bytes + 63) / 64 * 64 : arena.base - 1;
        expect(faults(outside), "guard %d of %ld bytes does not fault", guard, (long)bytes);
        kvb_arena_close(&arena);
    }
}

/* Run a decode and its twin if the variant has kernels for the dtypes; else it must be refused. */
static void check_variant(kvb_decode args)
{
    const char *isa = kvb_word("isa", args.isa), *variant = kvb_word("variant", args.variant);
    if (!has_halves(args.variant, args.cache)) {
        expect(run_decode(&args, 1) == KVB_BAD_ARGUMENT && strstr(kvb_message(), variant), "%s: %s",
               variant, kvb_message());
        expect(run_twin(&args, 1) == KVB_BAD_ARGUMENT && strstr(kvb_message(), variant), "%s: %s",
               variant, kvb_message());
        return;
    }
    if (!has_kernel(args.variant, args.cache, args.isa)) {
        expect(run_decode(&args, 1) == KVB_UNSUPPORTED && strstr(kvb_message(), variant) &&
                   strstr(kvb_message(), isa),
               "%s on %s: %s", variant, isa, kvb_message());
        return;
    }
    expect(!run_decode(&args, 1) && isfinite(args.out[0]), "decode %s: %s", isa, kvb_message());
    expect(!run_twin(&args, 1), "twin %s: %s", isa, kvb_message());
    args.wrap = args.cache->capacity / 2 + 1;
    expect(!run_decode(&args, 1) && isfinite(args.out[0]), "decode %s, wrapped: %s", isa,
           kvb_message());
}

/* Allocate rows of floats, and fill them with noise. */
static float *rows_of(int64_t rows, int64_t dim, uint64_t seed)
{
    float *found = need((size_t)(rows * dim) * sizeof *found);
    noise(found, rows * dim, seed);
    return found;
}

/* Store, decode, twin and unpack one shape whose rows fill their arenas to the end. */
static void check_shape(kvb_cache shape, int32_t guard)
{
    rig r;
    if (!rig_open(&r, shape, 0) || !rig_part(&r, guard))
        return;
    kvb_cache *c = &r.cache;
    int64_t heads = c->batch * c->kv_heads, group = guard & 1 ? 8 : 3;
    float *k = rows_of(heads * c->capacity, c->k.dim, 1);
    float *v = rows_of(heads * c->capacity, c->v.dim, 2);
    float *q = rows_of(heads * group, c->k.dim, 3), *out = rows_of(heads * group, c->v.dim, 4);
    for (int i = 0; tiers[i] >= 0; i++) {
        memset(c->lengths, 0, (size_t)c->batch * sizeof *c->lengths);
        kvb_store put = {.cache = c,
                         .k = k,
                         .v = v,
                         .tokens = c->capacity,
                         .isa = tiers[i],
                         .nt = guard & 1,
                         .advance = 1};
        const char *isa = kvb_word("isa", tiers[i]);
        expect(!run_bulk(&put, 1), "bulk %s: %s", isa, kvb_message());
        for (int32_t variant = 0; kvb_word("variant", variant); variant++)
            for (int32_t schedule = 0; kvb_word("schedule", schedule); schedule++)
                check_variant((kvb_decode){.cache = c,
                                           .q = q,
                                           .out = out,
                                           .q_heads = group * c->kv_heads,
                                           .isa = tiers[i],
                                           .variant = variant,
                                           .schedule = schedule});
        expect(!run_unpack(c, 0, c->capacity, k, v, tiers[i], 1), "unpack %s: %s", isa,
               kvb_message());
    }
    rig_close(&r);
    free(k);
    free(v);
    free(q);
    free(out);
}

/* Check K of each dtype of a layout. V has the same dtype (apart 0), or the dtype `apart` places
 * further on, with another width and other scales; then every other size is tested. */
static void check_layout(int32_t layout, int32_t apart)
{
    enum { DIMS = 6 };
    static const int64_t dims[DIMS] = {1, 40, 37, 72, 128, 104},
                         v_dims[DIMS] = {33, 1, 24, 40, 96, 72};
    int32_t dtypes = 0;
    while (kvb_word("dtype", dtypes))
        dtypes++;
    for (int32_t dtype = 0; dtype < dtypes; dtype++)
        for (int d = apart ? dtype % 2 : 0; d < DIMS; d += apart ? 2 : 1) {
            kvb_cache shape = {.layout = layout,
                               .k = {.dtype = dtype, .scale = d & 1},
                               .v = {.dtype = (dtype + apart) % dtypes, .scale = (d + apart) & 1},
                               .inner = d & 1,
                               .batch = 2,
                               .kv_heads = 2,
                               .head_dim = dims[d],
                               .v_dim = apart ? v_dims[d] : 0,
                               .capacity = 16 * d + 15,
                               .block_tokens = 5,
                               .blocks = 2 * ((16 * d + 15 + 4) / 5)};
            if (kvb_reads(0, layout, dtype, KVB_K) >= 0 &&
                kvb_reads(0, layout, shape.v.dtype, KVB_V) >= 0)
                check_shape(shape, 1 + d % 2);
            else
                expect(kvb_cache_plan(&shape) == KVB_BAD_ARGUMENT && strstr(kvb_message(), "dtype"),
                       "layout %s of %s: %s", kvb_word("layout", layout), kvb_word("dtype", dtype),
                       kvb_message());
        }
}

void check_guards(void)
{
    static const int64_t sizes[] = {64, 4096, 5 * 64, 65536, 65536 + 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_arena(sizes[i]);
    for (int32_t layout = 0; kvb_word("layout", layout); layout++) {
        check_layout(layout, 0);
        check_layout(layout, 3 + 2 * layout); /* other pairs in each layout */
    }
}
