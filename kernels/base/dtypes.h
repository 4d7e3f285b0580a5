/* The number formats of a cache, one line each: X(word, enumerator, elements of a block, bytes of a
 * block, further fields of kvb_format in base/formats.h). A block is one element. In packed rows it
 * is the elements that share a scale inside the row. Words, enum, formats and the tables of all
 * tiers are made from this list, in its order. For 8-bit floats, loads and stores are made from it,
 * too. */
#ifndef KVB_DTYPES_H
#define KVB_DTYPES_H

#define KVB_DTYPES(X)                                      \
    X(f32, F32, 1, 4)                                      \
    X(f16, F16, 1, 2)                                      \
    X(bf16, BF16, 1, 2)                                    \
    X(i8, I8, 1, 1, .scaled = true)                        \
    X(e4m3, E4M3, 1, 1, .exponent = 4)                     \
    X(e5m2, E5M2, 1, 1, .exponent = 5, .infinities = true) \
    X(q8_0, Q8_0, 32, 34)                                  \
    X(q4_0, Q4_0, 32, 18)

/* The packed formats that `dot` multiplies as whole numbers: X(word, enumerator).
 * isa/dot/packs.tmpl.c loads their codes. */
#define KVB_DOT_PACKS(X) X(q8_0, Q8_0) X(q4_0, Q4_0)
/* The 8-bit floats; and the formats that `dot` multiplies as bf16, which holds all their values. */
#define KVB_FLOATS8(X) X(e4m3, E4M3) X(e5m2, E5M2)
#define KVB_DOT_FLOATS(X) X(bf16, BF16) KVB_FLOATS8(X)

#endif
