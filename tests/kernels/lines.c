/* lines LAYOUT DTYPES KV_HEADS GROUP HEAD_DIM CONTEXT RUNS [VARIANT ISA PREFETCH]: a program for a
 * cache simulator. DTYPES: one dtype, or those of K and V, such as f16+i8.
 *
 * A KV cache of CONTEXT tokens is filled, evicted from all simulated caches, and decoded RUNS times
 * (0 or 1) by the scalar tier. The misses of 1 run less those of 0 runs are the lines that a decode
 * touches. Prints the number that the library states.
 *
 * With a variant (or "twin", or "twin." and a variant), a tier (or "best") and a schedule, nothing
 * is evicted: for a tool that lists loads. Prints the address of the KV cache, its bytes, and the
 * bytes that loads should ask for. Exits with 3 if the tier has no such kernel. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvbench.h"

enum { SWEEP = 4 << 20 }; /* bytes: several times the simulated last-level cache */

static int32_t word(const char *list, const char *wanted)
{
    for (int32_t i = 0; kvb_word(list, i); i++)
        if (!strcmp(kvb_word(list, i), wanted))
            return i;
    fprintf(stderr, "lines: no %s is called %s\n", list, wanted);
    exit(2);
}

/* Read one dtype for K and V, or two with a plus between them. */
static void take_dtypes(char *words, kvb_cache *c)
{
    char *plus = strchr(words, '+');
    if (plus)
        *plus = '\0';
    c->k.dtype = word("dtype", words);
    c->v.dtype = plus ? word("dtype", plus + 1) : c->k.dtype;
}

static void must(int32_t code)
{
    if (code) {
        fprintf(stderr, "lines: %s\n", kvb_message());
        exit(code == KVB_UNSUPPORTED ? 3 : 2);
    }
}

static void *need(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        exit(2);
    memset(memory, 1, (bytes + 63) / 64 * 64);
    return memory;
}

/* Plan and bind a cache in its own memory. All tokens count as stored. A page table has the blocks
 * in reverse order. */
static kvb_cache planned(char **argv)
{
    kvb_cache c = {.layout = word("layout", argv[1]),
                   .batch = 1,
                   .kv_heads = atoi(argv[3]),
                   .head_dim = atoi(argv[5]),
                   .capacity = atoi(argv[6]),
                   .block_tokens = 16,
                   .blocks = (atoi(argv[6]) + 15) / 16};
    take_dtypes(argv[2], &c);
    must(kvb_cache_plan(&c));
    must(kvb_cache_bind(&c, need((size_t)c.bytes)));
    int32_t *table = need((size_t)c.blocks * sizeof *table);
    for (int64_t i = 0; i < c.blocks; i++)
        table[i] = (int32_t)(c.blocks - 1 - i);
    c.table = table;
    c.lengths = need(sizeof *c.lengths);
    c.lengths[0] = c.capacity;
    return c;
}

static void run(kvb_team *team, kvb_task *task)
{
    kvb_run_times times = {0};
    must(kvb_run(team, &task, 1, 1, NULL, &times));
}

static void sweep(const volatile char *buffer)
{
    for (size_t at = 0; at < SWEEP; at += 64)
        (void)buffer[at];
}

int main(int argc, char **argv)
{
    if (argc != 8 && argc != 11)
        return 2;
    kvb_cache cache = planned(argv);
    const bool listed = argc == 11, twin = listed && !strncmp(argv[8], "twin", 4);
    const char *variant = !listed || !strcmp(argv[8], "twin") ? "flash"
                          : twin                              ? argv[8] + strlen("twin.")
                                                              : argv[8];
    const char *isa = listed && strcmp(argv[9], "best") ? argv[9] : "scalar";
    int64_t q_heads = cache.kv_heads * atoi(argv[4]);
    size_t vector = (size_t)(q_heads * cache.head_dim) * sizeof(float);
    kvb_decode args = {.cache = &cache,
                       .q = need(vector),
                       .out = need(vector),
                       .q_heads = q_heads,
                       .variant = word("variant", variant),
                       .isa = word("isa", isa),
                       .schedule = word("schedule", listed ? argv[10] : "off")};
    if (listed && !strcmp(argv[9], "best"))
        args.isa = kvb_isa_best();
    kvb_team *team;
    kvb_task *fill, *decode;
    kvb_traffic traffic;
    must(kvb_team_open(NULL, 1, &team));
    must(kvb_task_fill(&args, 1, 1, &fill));
    must((twin ? kvb_task_twin : kvb_task_decode)(&args, 1, &decode));
    must(kvb_task_traffic(decode, &traffic));
    if (!listed) {
        char *buffer = need(SWEEP);
        run(team, fill);
        sweep(buffer);
    }
    for (int i = 0; i < atoi(argv[7]); i++)
        run(team, decode);
    if (!listed)
        printf("%.0f\n", traffic.line / 64);
    else
        printf("%llu %lld %.0f\n", (unsigned long long)(uintptr_t)cache.k.rows,
               (long long)cache.bytes,
               traffic.issued - traffic.table - (twin ? 0.0 : 2.0 * (double)vector));
    return 0;
}
