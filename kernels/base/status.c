#include <stdarg.h>
#include <stdio.h>

#include "base/core.h"

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
