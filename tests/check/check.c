/* kvb-check [--isa NAME] [CASE-FILE...]: every test, on every tier that runs here or on one. Exit 1 when one fails. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 };

int32_t tiers[16];
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

/* Fill `tiers` with the one asked for, or with all that run. Returns false where the one asked for does not run. */
static bool choose_tiers(const char *isa)
{
    int n = 0;
    bool found = false;
    for (int32_t i = 0; kvb_word("isa", i); i++) {
        if (!kvb_isa_runs(i) || (isa && strcmp(isa, kvb_word("isa", i))))
            continue;
        tiers[n++] = i;
        found = true;
    }
    tiers[n] = -1;
    return found;
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

int main(int argc, char **argv)
{
    const char *isa = NULL;
    int first = 1;
    if (argc > 1 && !strcmp(argv[1], "--isa")) {
        if (argc < 3) {
            fputs("usage: kvb-check [--isa NAME] [CASE-FILE...]\n", stderr);
            return 2;
        }
        isa = argv[2];
        first = 3;
    }
    if (!choose_tiers(isa))
        return refuse_isa(isa ? isa : "(none)");
    check_tiers();
    check_arguments();
    check_codes();
    check_guards();
    check_threads();
    check_foreign();
    for (int i = first; i < argc; i++)
        check_replay(argv[i]);
    teams_close();
    printf("%ld passed, %ld failed:", passed, failed);
    for (int i = 0; tiers[i] >= 0; i++)
        printf(" %s", kvb_word("isa", tiers[i]));
    putchar('\n');
    return failed ? 1 : 0;
}
