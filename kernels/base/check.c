/* What is refused, and how the message says so. */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

static _Thread_local char message[240];

const char *kvb_message(void) { return message; }

int32_t kvb_fail(int32_t code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return code;
}

int32_t kvb_fail_null(const char *name) { return kvb_fail(KVB_BAD_ARGUMENT, "%s is null", name); }

int32_t kvb_check_aligned(const char *name, const void *buffer)
{
    TRY(kvb_check_given(name, buffer));
    if ((uintptr_t)buffer % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s must be aligned to %d bytes", name, LINE);
    return KVB_OK;
}

int32_t kvb_check_lines(const char *name, int64_t bytes)
{
    if (bytes % LINE)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %lld; it must be a multiple of %d", name,
                        (long long)bytes, LINE);
    return KVB_OK;
}

int32_t kvb_check_word(const char *list, int32_t word, int32_t count)
{
    if (word < 0 || word >= count)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s %d is not a word of the list (0 to %d)", list, word,
                        count - 1);
    return KVB_OK;
}

int32_t kvb_check_range(const char *name, int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high)
        return kvb_fail(KVB_BAD_ARGUMENT, "%s is %lld; allowed is %lld to %lld", name,
                        (long long)value, (long long)low, (long long)high);
    return KVB_OK;
}

int32_t kvb_check_threads(int32_t threads)
{
    return kvb_check_range("threads", threads, 1, THREADS_MAX);
}
