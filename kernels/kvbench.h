/* The kvbench kernel library, for C and C++. Declarations live in abi.h. */
#ifndef KVBENCH_H
#define KVBENCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
#include "abi.h"
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
