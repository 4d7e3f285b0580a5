/* Refusing an argument: a code, and a message that names the argument. */
#ifndef KVB_CHECK_H
#define KVB_CHECK_H

#include "base/words.h"

#pragma GCC visibility push(hidden)

/* Keep the message for kvb_message(), and return the code. */
int32_t kvb_fail(int32_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3), visibility("hidden")));

int32_t kvb_fail_null(const char *name);
static inline int32_t kvb_check_given(const char *name, const void *pointer)
{
    return pointer ? KVB_OK : kvb_fail_null(name);
}
/* Refuse: a buffer not aligned to a cache line; bytes that are not a multiple of a line; an index
 * outside a list of words; a number outside its limits; a number of threads. */
int32_t kvb_check_aligned(const char *name, const void *buffer);
int32_t kvb_check_lines(const char *name, int64_t bytes);
int32_t kvb_check_word(const char *list, int32_t word, int32_t count);
int32_t kvb_check_range(const char *name, int64_t value, int64_t low, int64_t high);
int32_t kvb_check_threads(int32_t threads);

/* Return the code of a check that fails. */
#define TRY(call)            \
    do {                     \
        int32_t code = call; \
        if (code)            \
            return code;     \
    } while (0)

enum { BATCH_MAX = 1 << 20, HEADS_MAX = 1 << 16, THREADS_MAX = 1024 };
enum { QUERIES_MAX = 32 }; /* queries of a sequence: a word of `tree` has a bit for each */
/* so that tokens times row bytes fit int64 */
static const int64_t tokens_max = INT32_MAX;
static const int64_t bytes_max = INT64_MAX / 8;

#pragma GCC visibility pop

#endif
