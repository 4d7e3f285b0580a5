/* kvb-check [--isa NAME,...] [--refuses NAME,...] [--only TEST] [--skip TEST] [CASE-FILE...]: run
 * every test, or one, or all but one, and the cases, on every tier that runs here or on the named
 * ones; check that others are refused. Exits with 1 if a test fails, with 2 if a named tier does
 * not run. */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) && defined(NDEBUG)
#error "the build with sanitizers is the one whose assertions hold"
#endif

enum { SHOWN = 40, MOST_TIERS = 15 };

int32_t tiers[MOST_TIERS + 1] = {-1};
static long passed, failed;

bool expect(bool right, const char *format, ...)
{
    if (right) {
        passed++;
        return true;
    }
    if (failed++ < SHOWN) {
        va_list list;
        va_start(list, format);
        fputs("FAILED ", stdout);
        vprintf(format, list);
        putchar('\n');
        va_end(list);
    }
    return false;
}

void refused_with(int32_t code, int32_t right, const char *name)
{
    expect(code == right && strstr(kvb_message(), name), "bad %s: code %d, message \"%s\"", name,
           code, code ? kvb_message() : "");
}

int32_t word_of(const char *list, const char *word)
{
    for (int32_t i = 0; kvb_word(list, i); i++)
        if (!strcmp(kvb_word(list, i), word))
            return i;
    return -1;
}

void *need(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) {
        fputs("kvb-check: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void noise(float *to, int64_t count, uint64_t seed)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < count; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        to[i] = ((float)(x >> 40) / 8388608.0f - 1.0f) * 1.7320508f;
    }
}

double apart(const float *a, const float *b, int64_t count)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = fabs((double)a[i] - (double)b[i]);
        worst = error <= worst || isnan(worst) ? worst : error;
    }
    return worst;
}

static void add_tier(int32_t isa)
{
    static int count;
    if (count < MOST_TIERS)
        tiers[count++] = isa;
    tiers[count] = -1;
}

bool has_halves(int32_t variant, const kvb_cache *c)
{
    return kvb_reads(variant, c->layout, c->k.dtype, KVB_K) >= 0 &&
           kvb_reads(variant, c->layout, c->v.dtype, KVB_V) >= 0 &&
           (c->k.dtype == c->v.dtype || variant != word_of("variant", "perhead"));
}

/* Whether a kernel is listed, for K and V of one dtype. */
static bool listed(int32_t variant, int32_t layout, int32_t dtype, int32_t isa)
{
    for (int32_t i = 0; kvb_kernels(i); i++) {
        const kvb_kernel *k = kvb_kernels(i);
        if (!strcmp(k->op, "decode") && !strcmp(k->variant, kvb_word("variant", variant)) &&
            !strcmp(k->layout, kvb_word("layout", layout)) &&
            !strcmp(k->dtype, kvb_word("dtype", dtype)) && !strcmp(k->isa, kvb_word("isa", isa)))
            return k->runnable;
    }
    return false;
}

bool has_kernel(int32_t variant, const kvb_cache *c, int32_t isa)
{
    /* V is in rows as in the layout head, or in quads */
    const bool in_quads = kvb_cell(c->layout, c->v.dtype, KVB_V) > 0;
    const int32_t of_v = in_quads ? c->layout : word_of("layout", "head");
    return has_halves(variant, c) && listed(variant, c->layout, c->k.dtype, isa) &&
           listed(variant, of_v, c->v.dtype, isa);
}

/* Fill `tiers` with the named tiers, or with all that run. Returns the name of a tier that does not
 * run, or null. */
static const char *choose_tiers(char *names)
{
    for (char *name = names ? strtok(names, ",") : NULL; name; name = strtok(NULL, ",")) {
        if (!kvb_isa_runs(word_of("isa", name)))
            return name;
        add_tier(word_of("isa", name));
    }
    for (int32_t i = 0; !names && kvb_word("isa", i); i++)
        if (kvb_isa_runs(i))
            add_tier(i);
    return tiers[0] < 0 ? "(none)" : NULL;
}

static int refuse_isa(const char *isa)
{
    fprintf(stderr, "kvb-check: isa %s does not run here; these do:", isa);
    for (int32_t i = 0; kvb_word("isa", i); i++)
        if (kvb_isa_runs(i))
            fprintf(stderr, " %s", kvb_word("isa", i));
    fputc('\n', stderr);
    return 2;
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {{"tiers", check_tiers},   {"arguments", check_arguments}, {"codes", check_codes},
             {"guards", check_guards}, {"threads", check_threads},     {"foreign", check_foreign},
             {"runs", check_runs},     {"anew", check_anew},           {"sums", check_sums},
             {"moves", check_moves},   {"series", check_series},       {"queries", check_queries},
             {"beside", check_beside}};
enum { TESTS = sizeof tests / sizeof *tests };

/* Return the place of the named test, TESTS if there is none, or -1 without a name. */
static int place_of(const char *name)
{
    int i = 0;
    while (name && i < TESTS && strcmp(name, tests[i].name))
        i++;
    return name ? i : -1;
}

static int refuse_test(const char *name)
{
    fprintf(stderr, "kvb-check: there is no test %s\n", name);
    return 2;
}

enum { ISA, REFUSES, ONLY, SKIP, OPTIONS };

/* Return the index of the first argument that is not an option, or 0 if an option is wrong. */
static int take_options(int argc, char **argv, char *options[OPTIONS])
{
    static const char *const names[OPTIONS] = {"--isa", "--refuses", "--only", "--skip"};
    int at = 1;
    for (; at < argc && !strncmp(argv[at], "--", 2); at += 2) {
        int i = 0;
        while (i < OPTIONS && strcmp(argv[at], names[i]))
            i++;
        if (i == OPTIONS || at + 1 == argc)
            return 0;
        options[i] = argv[at + 1];
    }
    return at;
}

int main(int argc, char **argv)
{
    char *options[OPTIONS] = {NULL};
    int first = take_options(argc, argv, options);
    if (!first) {
        fputs("usage: kvb-check [--isa NAME,...] [--refuses NAME,...] [--only TEST] [--skip TEST]"
              " [CASE-FILE...]\n",
              stderr);
        return 2;
    }
    const char *absent = choose_tiers(options[ISA]);
    if (absent)
        return refuse_isa(absent);
    const int only = place_of(options[ONLY]), skip = place_of(options[SKIP]);
    if (only == TESTS || skip == TESTS)
        return refuse_test(options[only == TESTS ? ONLY : SKIP]);
    check_refused(options[REFUSES]);
    for (int i = 0; i < TESTS; i++)
        if (only < 0 ? i != skip : i == only)
            tests[i].run();
    for (int i = first; i < argc; i++)
        check_replay(argv[i]);
    teams_close();
    printf("%ld passed, %ld failed:", passed, failed);
    for (int i = 0; tiers[i] >= 0; i++)
        printf(" %s", kvb_word("isa", tiers[i]));
    putchar('\n');
    return failed ? 1 : 0;
}
