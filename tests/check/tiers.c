/* The registry, named tiers, and the table of fields. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static void check_lists(void)
{
    static const char *const lists[] = {"op",    "variant", "layout", "inner",   "dtype",
                                        "scale", "isa",     "pages",  "schedule"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        expect(kvb_word(lists[i], 0) != NULL, "list %s is empty", lists[i]);
        expect(!kvb_word(lists[i], -1) && !kvb_word(lists[i], 1000), "list %s has no end",
               lists[i]);
    }
    expect(!kvb_word("no such list", 0) && !kvb_word(NULL, 0), "an unknown list has words");
}

/* A tier decodes a dtype with a variant in all layouts that support both, or in none. The scalar
 * tier has every variant, and every tier has the first variant. */
static void check_cells(int64_t decodes[16][16][16], int32_t variant, int32_t dtype)
{
    int64_t cells = 0;
    for (int32_t layout = 0; kvb_word("layout", layout); layout++)
        cells += kvb_reads(variant, layout, dtype, KVB_K) >= 0;
    for (int32_t isa = 0; kvb_word("isa", isa); isa++) {
        const bool built = decodes[isa][0][0] > 0;
        const bool whole = isa == word_of("isa", "scalar") || (variant == 0 && built);
        const int64_t found = decodes[isa][variant][dtype];
        expect(found == cells || (!whole && !found),
               "%s of %s on %s: %ld kernels listed, the matrix has %ld",
               kvb_word("variant", variant), kvb_word("dtype", dtype), kvb_word("isa", isa),
               (long)found, (long)cells);
    }
}

static void check_matrix(void)
{
    int64_t decodes[16][16][16] = {{{0}}}; /* tier, variant, dtype */
    for (int32_t i = 0; kvb_kernels(i); i++) {
        const kvb_kernel *k = kvb_kernels(i);
        int32_t isa = word_of("isa", k->isa);
        bool decode = strcmp(k->op, "decode") == 0;
        expect(strcmp(k->isa, "-") == 0 || isa >= 0, "kernel %d: isa %s is no word", i, k->isa);
        expect(k->about && *k->about, "kernel %d says nothing about itself", i);
        /* kernels that not every CPU of the tier runs */
        bool more = decode || strncmp(k->op, "dot", 3) == 0;
        if (isa >= 0)
            expect(more ? k->runnable <= kvb_isa_runs(isa) : k->runnable == kvb_isa_runs(isa),
                   "kernel %d (%s): runnable is %d", i, k->isa, k->runnable);
        if (decode && isa >= 0)
            decodes[isa][word_of("variant", k->variant)][word_of("dtype", k->dtype)]++;
    }
    for (int32_t variant = 0; kvb_word("variant", variant); variant++)
        for (int32_t dtype = 0; kvb_word("dtype", dtype); dtype++)
            check_cells(decodes, variant, dtype);
    static const int32_t none[][4] = {{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1},
                                      {99, 0, 0, 0}, {0, 99, 0, 0}, {0, 0, 99, 0}, {0, 0, 0, 2}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        expect(kvb_reads(none[i][0], none[i][1], none[i][2], none[i][3]) < 0,
               "kvb_reads knows words that are none: row %zu", i);
    expect(!kvb_kernels(-1) && !kvb_kernels(1 << 20), "the registry has no end");
}

/* A tier that does not run is refused with its name; one that runs decodes. */
static void check_forced(void)
{
    rig r;
    kvb_cache shape = {
        .batch = 1, .kv_heads = 1, .head_dim = 8, .capacity = 4, .block_tokens = 1, .blocks = 4};
    if (!rig_open(&r, shape, 1))
        return;
    float q[8] = {1}, out[8];
    r.lengths[0] = 1;
    memset(r.arena.base, 0, (size_t)r.cache.bytes);
    expect(kvb_isa_runs(word_of("isa", "scalar")) == 1, "scalar does not run");
    expect(kvb_isa_runs(kvb_isa_best()) == 1, "the best tier does not run");
    for (int32_t isa = 0; kvb_word("isa", isa); isa++) {
        for (int i = 0; i < 8; i++)
            out[i] = -7.0f;
        kvb_decode args = {.cache = &r.cache, .q = q, .out = out, .q_heads = 1, .isa = isa};
        int32_t code = run_decode(&args, 1);
        if (kvb_isa_runs(isa)) {
            expect(!code, "isa %s: %s", kvb_word("isa", isa), kvb_message());
            expect(out[0] == 0.0f, "isa %s: zeros decode to %g", kvb_word("isa", isa),
                   (double)out[0]);
        } else {
            expect(code == KVB_UNSUPPORTED && strstr(kvb_message(), kvb_word("isa", isa)),
                   "isa %s: code %d, \"%s\"", kvb_word("isa", isa), code, kvb_message());
            expect(out[0] == -7.0f, "isa %s: a refused call wrote", kvb_word("isa", isa));
        }
    }
    rig_close(&r);
}

static bool in_build(const char *isa)
{
    for (int32_t i = 0; kvb_kernels(i); i++)
        if (!strcmp(kvb_kernels(i)->isa, isa))
            return true;
    return false;
}

void check_refused(char *names)
{
    for (char *name = names ? strtok(names, ",") : NULL; name; name = strtok(NULL, ",")) {
        expect(in_build(name), "isa %s, to be refused, is not part of this build", name);
        expect(!kvb_isa_runs(word_of("isa", name)), "isa %s, to be refused, runs", name);
    }
}

static void check_fields(void)
{
    int64_t structs = 0, cache = 0;
    for (int32_t i = 0; kvb_fields(i); i++) {
        const kvb_field *f = kvb_fields(i);
        structs += !strchr(f->name, '.');
        if (!strcmp(f->name, "kvb_cache"))
            cache = f->size;
        if (!strcmp(f->name, "kvb_cache.capacity"))
            expect(f->offset == (int64_t)offsetof(kvb_cache, capacity),
                   "kvb_cache.capacity lies at %ld", (long)f->offset);
    }
    expect(structs >= 8, "the field table has %ld structs", (long)structs);
    expect(cache == (int64_t)sizeof(kvb_cache), "kvb_cache has %ld bytes", (long)cache);
    expect(kvb_build() && *kvb_build(), "kvb_build is empty");
}

void check_tiers(void)
{
    check_lists();
    check_matrix();
    check_forced();
    check_fields();
}
