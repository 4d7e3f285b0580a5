/* The C check program: built-in tests and replayed case files, through the public interface alone.
 */
#ifndef KVB_CHECK_H
#define KVB_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvbench.h"

/* ---- check.c ---- */

/* Count one check; a false one prints its line. Returns `right`. */
bool expect(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call is refused with the right code, and its message names what was wrong. */
void refused_with(int32_t code, int32_t right, const char *name);
/* Index of a word in a list of the library, or -1. */
int32_t word_of(const char *list, const char *word);
/* The tiers under test, ending with -1. */
extern int32_t tiers[16];
/* Memory or exit: a check program has nothing to do without it. */
void *need(size_t bytes);
/* Pseudo-random floats of about unit variance. */
void noise(float *to, int64_t count, uint64_t seed);

/* The largest difference of two numbers; NaN where one is. */
double apart(const float *a, const float *b, int64_t count);

/* The variant has kernels for K and V of a cache, on some tier: a half for each. */
bool has_halves(int32_t variant, const kvb_cache *cache);
/* And this tier lists them, and this CPU runs them. */
bool has_kernel(int32_t variant, const kvb_cache *cache, int32_t isa);

/* ---- rig.c: a cache over a guarded arena ---- */

/* In a kvb_cache: K and V of a dtype, with scales of another. */
#define PLANES(of, scales) \
    .k = {.dtype = (of), .scale = (scales)}, .v = {.dtype = (of), .scale = (scales)}

typedef struct rig {
    kvb_cache cache;
    kvb_arena arena;
    kvb_arena apart[4];
    int64_t *lengths;
    int32_t *table;
} rig;

/* Plan, allocate and bind `shape`; lengths are zero, and a paged cache's table counts up. */
bool rig_open(rig *r, kvb_cache shape, int32_t guard);
/* Give each plane a guarded arena of its own, before anything is stored. */
bool rig_part(rig *r, int32_t guard);
void rig_close(rig *r);
/* Run planned tasks in turn. Returns the library's code. */
int32_t run_tasks(kvb_task *const *tasks, int32_t count, int64_t passes, kvb_task *between,
                  int32_t threads);
/* Run once on `threads` threads, and free; unless the code of its plan is not zero. Each of these
 * returns the library's code. */
int32_t run_on(int32_t planned, kvb_task *task, int32_t threads);
int32_t run_decode(const kvb_decode *args, int32_t threads);
int32_t run_twin(const kvb_decode *args, int32_t threads);
int32_t run_append(const kvb_store *args, int32_t threads);
int32_t run_bulk(const kvb_store *args, int32_t threads);
int32_t run_unpack(const kvb_cache *cache, int64_t first, int64_t tokens, float *k, float *v,
                   int32_t isa, int32_t threads);
void teams_close(void);

/* ---- the tests ---- */

void check_replay(const char *path);
void check_tiers(void);
/* Tiers, by names with commas between, that this build has and this CPU must refuse. */
void check_refused(char *names);
void check_codes(void);
void check_arguments(void);
void check_guards(void);
void check_threads(void);
void check_foreign(void);
void check_runs(void);
void check_anew(void);
void check_sums(void);
void check_moves(void);
void check_series(void);
void check_queries(void);
void check_beside(void);

#endif
