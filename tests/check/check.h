/* The C check program: built-in tests and replayed case files, only through the public interface.
 */
#ifndef KVB_CHECK_H
#define KVB_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvbench.h"

/* ---- check.c ---- */

/* Count one check. A false one prints its message. Returns `right`. */
bool expect(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Check that a call was refused with the code `right`, and that its message names what was wrong.
 */
void refused_with(int32_t code, int32_t right, const char *name);
/* Return the index of a word in a list of the library, or -1. */
int32_t word_of(const char *list, const char *word);
/* The tiers under test, then -1. */
extern int32_t tiers[16];
/* Allocate memory; exit if there is none. */
void *need(size_t bytes);
/* Write pseudo-random floats of about unit variance. */
void noise(float *to, int64_t count, uint64_t seed);

/* Return the largest difference of two arrays; NaN if an element is NaN. */
double apart(const float *a, const float *b, int64_t count);

/* Whether a variant has halves for K and V of a cache, on some tier. */
bool has_halves(int32_t variant, const kvb_cache *cache);
/* Whether this tier lists the kernel, too, and this CPU runs it. */
bool has_kernel(int32_t variant, const kvb_cache *cache, int32_t isa);

/* ---- rig.c: a cache over a guarded arena ---- */

/* Fields of a kvb_cache: K and V of dtype `of`, with scales of type `scales`. */
#define PLANES(of, scales) \
    .k = {.dtype = (of), .scale = (scales)}, .v = {.dtype = (of), .scale = (scales)}

typedef struct rig {
    kvb_cache cache;
    kvb_arena arena;
    kvb_arena apart[4];
    int64_t *lengths;
    int32_t *table;
} rig;

/* Plan, allocate and bind `shape`. Lengths are zero; the table of a paged cache counts up. */
bool rig_open(rig *r, kvb_cache shape, int32_t guard);
/* Give each plane a guarded arena of its own. Call before anything is stored. */
bool rig_part(rig *r, int32_t guard);
void rig_close(rig *r);
/* Run planned tasks round robin. Returns the library's code. */
int32_t run_tasks(kvb_task *const *tasks, int32_t count, int64_t passes, kvb_task *between,
                  int32_t threads);
/* If `planned` is KVB_OK, run a task once on `threads` threads and free it. Returns the library's
 * code, as the functions below do. */
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
/* Check that this CPU refuses tiers of this build. `names` are separated by commas. */
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
