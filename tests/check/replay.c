/* Replay the records of a case file, in the format of tests/casefile.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* In the order of FIELDS in tests/casefile.py. */
typedef struct record {
    int64_t seed, index, op, layout, inner, k_dtype, v_dtype, k_scale, v_scale, ring, batch,
        kv_heads, head_dim, v_dim, capacity, block_tokens, blocks, pad, k_bytes, v_bytes,
        k_scale_bytes, v_scale_bytes, q_heads, q_len, mask, told, window, kept, sloped, sinks,
        by_channel, variant, schedule, threads, deterministic, guard, fill, tokens, head_major, nt,
        paged;
    double scale, k_tensor, v_tensor, softcap;
} record;

/* The arrays of a decode for queries and query heads. Null: none. */
typedef struct told {
    int64_t *ends;
    uint32_t *tree;
    float *slopes, *sinks;
} told;

static void take(FILE *file, void *to, int64_t bytes)
{
    if (fread(to, 1, (size_t)bytes, file) == (size_t)bytes)
        return;
    fputs("kvb-check: a case file ends early\n", stderr);
    exit(2);
}

static float *take_floats(FILE *file, int64_t count)
{
    float *to = need((size_t)count * sizeof *to);
    take(file, to, count * (int64_t)sizeof *to);
    return to;
}

static double *take_doubles(FILE *file, int64_t count)
{
    double *to = need((size_t)count * sizeof *to);
    take(file, to, count * (int64_t)sizeof *to);
    return to;
}

/* Copy floats to a guarded arena: the last one is next to the unreadable page (guard 1), or the
 * first one (guard 2). */
static float *guarded(kvb_arena *arena, const float *from, int64_t count, int32_t guard)
{
    int64_t bytes = count * (int64_t)sizeof *from, room = (bytes + 63) / 64 * 64;
    if (!expect(!kvb_arena_open(room, 0, guard, arena), "arena: %s", kvb_message()))
        exit(2);
    uint8_t *at = arena->base + (guard == 1 ? room - bytes : 0);
    memcpy(at, from, (size_t)bytes);
    return (float *)(void *)at;
}

/* Check that a tier that lacks a half is refused with both names, and writes nothing. */
static void replay_refused(kvb_decode *args, const record *c)
{
    const char *isa = kvb_word("isa", args->isa), *variant = kvb_word("variant", args->variant);
    float out = -7.0f;
    args->out = &out;
    int32_t code = run_decode(args, (int32_t)c->threads);
    expect(code == KVB_UNSUPPORTED && strstr(kvb_message(), isa) && strstr(kvb_message(), variant),
           "case %ld:%ld decode %s, which does not run: code %d, \"%s\"", (long)c->seed,
           (long)c->index, isa, code, kvb_message());
    expect(out == -7.0f, "case %ld:%ld decode %s: a refused call wrote", (long)c->seed,
           (long)c->index, isa);
}

static int64_t queries_of(const record *c) { return c->batch * (c->q_len ? c->q_len : 1); }

static void replay_decode(const record *c, const told *own, rig *r, FILE *file)
{
    int64_t asked = queries_of(c) * c->q_heads * r->cache.k.dim,
            count = queries_of(c) * c->q_heads * r->cache.v.dim;
    float *q = take_floats(file, asked), *unset = need((size_t)count * sizeof *unset);
    double *right = take_doubles(file, count), *bound = take_doubles(file, count);
    for (int i = 0; tiers[i] >= 0; i++) {
        kvb_arena q_arena, out_arena;
        kvb_decode args = {.cache = &r->cache,
                           .q_heads = c->q_heads,
                           .q_len = c->q_len,
                           .ends = own->ends,
                           .mask = (int32_t)c->mask,
                           .tree = own->tree,
                           .window = c->window,
                           .kept = c->kept,
                           .scale = (float)c->scale,
                           .softcap = (float)c->softcap,
                           .slope = own->slopes,
                           .sink = own->sinks,
                           .variant = (int32_t)c->variant,
                           .isa = tiers[i],
                           .schedule = (int32_t)c->schedule,
                           .deterministic = (int32_t)c->deterministic};
        if (!has_kernel((int32_t)c->variant, &r->cache, tiers[i])) {
            args.q = q;
            replay_refused(&args, c);
            continue;
        }
        args.q = guarded(&q_arena, q, asked, (int32_t)c->guard);
        args.out = guarded(&out_arena, unset, count, (int32_t)c->guard);
        const char *isa = kvb_word("isa", tiers[i]);
        int32_t code = run_decode(&args, (int32_t)c->threads);
        expect(!code, "case %ld:%ld decode %s: %s", (long)c->seed, (long)c->index, isa,
               kvb_message());
        int64_t wrong = 0, at = 0;
        for (int64_t e = 0; !code && e < count; e++)
            if (!(fabs((double)args.out[e] - right[e]) <= bound[e]) && !wrong++)
                at = e;
        expect(!wrong,
               "case %ld:%ld decode %s: out[%ld] is %.9g, expected %.9g within %.3g; %ld wrong",
               (long)c->seed, (long)c->index, isa, (long)at, (double)args.out[at], right[at],
               bound[at], (long)wrong);
        code = run_twin(&args, (int32_t)c->threads);
        expect(!code, "case %ld:%ld twin %s: %s", (long)c->seed, (long)c->index, isa,
               kvb_message());
        kvb_arena_close(&q_arena);
        kvb_arena_close(&out_arena);
    }
    free(q);
    free(unset);
    free(right);
    free(bound);
}

static void replay_store(const record *c, rig *r, FILE *file, bool append)
{
    int64_t rows = c->batch * c->tokens * c->kv_heads;
    int64_t of_k = rows * r->cache.k.dim, of_v = rows * r->cache.v.dim;
    float *k = take_floats(file, of_k), *v = take_floats(file, of_v);
    uint8_t *right = need((size_t)r->cache.bytes);
    take(file, right, r->cache.bytes);
    for (int i = 0; tiers[i] >= 0; i++) {
        kvb_arena k_arena, v_arena;
        kvb_store args = {.cache = &r->cache,
                          .tokens = c->tokens,
                          .head_major = (int32_t)c->head_major,
                          .nt = (int32_t)c->nt,
                          .isa = tiers[i]};
        args.k = guarded(&k_arena, k, of_k, (int32_t)c->guard);
        args.v = guarded(&v_arena, v, of_v, (int32_t)c->guard);
        memset(r->cache.k.rows, (int)c->fill, (size_t)r->cache.bytes);
        int32_t code =
            append ? run_append(&args, (int32_t)c->threads) : run_bulk(&args, (int32_t)c->threads);
        const char *isa = kvb_word("isa", tiers[i]), *op = append ? "append" : "bulk";
        expect(!code, "case %ld:%ld %s %s: %s", (long)c->seed, (long)c->index, op, isa,
               kvb_message());
        int64_t at = 0;
        while (at < r->cache.bytes && r->cache.k.rows[at] == right[at])
            at++;
        expect(at == r->cache.bytes, "case %ld:%ld %s %s: byte %ld of the planes differs",
               (long)c->seed, (long)c->index, op, isa, (long)at);
        kvb_arena_close(&k_arena);
        kvb_arena_close(&v_arena);
    }
    free(k);
    free(v);
    free(right);
}

/* Read the arrays of a decode, which follow its lengths in this order. */
static told take_told(const record *c, FILE *file)
{
    told own = {NULL};
    const int64_t queries = queries_of(c);
    if (c->told) {
        own.ends = need((size_t)queries * sizeof *own.ends);
        take(file, own.ends, queries * (int64_t)sizeof *own.ends);
    }
    if (c->mask == KVB_MASK_TREE) {
        own.tree = need((size_t)queries * sizeof *own.tree);
        take(file, own.tree, queries * (int64_t)sizeof *own.tree);
    }
    own.slopes = c->sloped ? take_floats(file, c->q_heads) : NULL;
    own.sinks = c->sinks ? take_floats(file, c->q_heads) : NULL;
    return own;
}

static void replay_one(const record *c, FILE *file)
{
    rig r;
    float *channel = c->by_channel ? take_floats(file, c->kv_heads * c->head_dim) : NULL;
    kvb_cache shape = {.layout = (int32_t)c->layout,
                       .inner = (int32_t)c->inner,
                       .k = {.dtype = (int32_t)c->k_dtype,
                             .scale = (int32_t)c->k_scale,
                             .channel = channel,
                             .tensor = (float)c->k_tensor},
                       .v = {.dtype = (int32_t)c->v_dtype,
                             .scale = (int32_t)c->v_scale,
                             .tensor = (float)c->v_tensor},
                       .ring = (int32_t)c->ring,
                       .batch = c->batch,
                       .kv_heads = c->kv_heads,
                       .head_dim = c->head_dim,
                       .v_dim = c->v_dim,
                       .capacity = c->capacity,
                       .block_tokens = c->block_tokens,
                       .blocks = c->blocks,
                       .pad = c->pad};
    if (!rig_open(&r, shape, (int32_t)c->guard))
        exit(2);
    const kvb_plane *k = &r.cache.k, *v = &r.cache.v;
    if (!expect(k->bytes == c->k_bytes && v->bytes == c->v_bytes &&
                    k->scale_bytes == c->k_scale_bytes && v->scale_bytes == c->v_scale_bytes,
                "case %ld:%ld: planes of %ld, %ld, %ld and %ld bytes, expected %ld, %ld, %ld, %ld",
                (long)c->seed, (long)c->index, (long)k->bytes, (long)v->bytes, (long)k->scale_bytes,
                (long)v->scale_bytes, (long)c->k_bytes, (long)c->v_bytes, (long)c->k_scale_bytes,
                (long)c->v_scale_bytes))
        exit(1);
    const bool decodes = c->op == word_of("op", "decode");
    take(file, r.lengths, c->batch * (int64_t)sizeof *r.lengths);
    const told own = decodes ? take_told(c, file) : (told){NULL};
    if (c->paged)
        take(file, r.table, c->batch * r.cache.table_stride * (int64_t)sizeof *r.table);
    if (decodes) {
        take(file, r.cache.k.rows, r.cache.bytes);
        replay_decode(c, &own, &r, file);
    } else {
        replay_store(c, &r, file, c->op == word_of("op", "append"));
    }
    free(own.ends);
    free(own.tree);
    free(own.slopes);
    free(own.sinks);
    free(channel);
    rig_close(&r);
}

void check_replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "kvb-check: cannot open %s\n", path);
        exit(2);
    }
    char magic[8];
    record c;
    while (fread(magic, 1, sizeof magic, file) == sizeof magic) {
        if (memcmp(magic, "KVBCASE6", sizeof magic)) {
            fprintf(stderr, "kvb-check: %s is not a case file\n", path);
            exit(2);
        }
        take(file, &c, sizeof c);
        replay_one(&c, file);
    }
    fclose(file);
}
