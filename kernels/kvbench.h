/* The kvbench kernel library, for C and C++. Declarations live in abi.h. */
#ifndef KVBENCH_H
#define KVBENCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
#include "abi.h"
/* A plug-in defines this: the version of the interface that it was written for (KVB_PLUGIN). */
extern const int32_t kvb_plugin;
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
