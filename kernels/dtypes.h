/* The number formats of a cache, one line each: X(word, enumerator, bytes of an element, one scale per token and head).
 * Words, enum, formats and the tables of all tiers are made from this list, in its order. */
#ifndef KVB_DTYPES_H
#define KVB_DTYPES_H

#define KVB_DTYPES(X)       \
    X(f32, F32, 4, false)   \
    X(f16, F16, 2, false)   \
    X(bf16, BF16, 2, false) \
    X(i8, I8, 1, true)      \
    X(e4m3, E4M3, 1, false) \
    X(e5m2, E5M2, 1, false)

#endif
