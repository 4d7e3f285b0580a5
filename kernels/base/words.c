/* The spelling of every word that crosses the interface, in the order of the enums in words.h. */
#include <string.h>

#include "base/words.h"

static const char *const ops[] = {"decode", "twin",     "append",    "bulk",    "clear", "unpack",
                                  "fill",   "repack",   "transpose", "logits",  "reset", "read",
                                  "write",  "write_nt", "copy",      "copy_nt", "triad", "flops",
                                  "dot8",   "dot16",    "latency",   "clock"};
static const char *const variants[] = {"flash", "twopass", "perhead", "round16", "dot"};
static const char *const layouts[] = {"head", "position", "paged", "blockt", "block16"};
static const char *const inners[] = {"head", "token"};
#define WORD(word, ...) #word,
static const char *const dtypes[] = {KVB_DTYPES(WORD)};
static const char *const scales[] = {"f32", "f16"};
static const char *const isas[] = {"scalar", "avx2", "avx512", "neon", "sve256", "sve512"};
static const char *const pages[] = {"base", "thp", "huge"};
static const char *const schedules[] = {KVB_PRESETS(WORD)};

#define LIST(name, words, count)    \
    {name, words,                   \
     sizeof words / sizeof *words + \
         0 * sizeof(char[sizeof words / sizeof *words == (count) ? 1 : -1])}

static const struct {
    const char *name;
    const char *const *words;
    size_t count;
} lists[] = {
    LIST("op", ops, OPS),
    LIST("variant", variants, VARIANTS),
    LIST("layout", layouts, LAYOUTS),
    LIST("inner", inners, INNERS),
    LIST("dtype", dtypes, DTYPES),
    LIST("scale", scales, SCALES),
    LIST("isa", isas, ISAS),
    LIST("pages", pages, PAGES),
    LIST("schedule", schedules, SCHEDULES),
};

const char *kvb_word(const char *list, int32_t index)
{
    for (size_t i = 0; list && i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(lists[i].name, list))
            return index >= 0 && (size_t)index < lists[i].count ? lists[i].words[index] : NULL;
    return NULL;
}
