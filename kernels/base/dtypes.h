/* The number formats of a cache, one line each: X(word, enumerator, elements and bytes of a block,
 * further fields of kvb_format in base/formats.h). A block is one element, or as many as share a
 * scale inside the row: such rows are packed. Words, enum, formats and the tables of all tiers are
 * made from this list, in its order. How a float of 8 bits is read and stored follows from its
 * line. */
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

/* The packed ones that `dot` takes as they are: X(word, enumerator). isa/dot/packs.tmpl.c says how
 * their codes are loaded. */
#define KVB_DOT_PACKS(X) X(q8_0, Q8_0) X(q4_0, Q4_0)
/* The floats of 8 bits; and all whose values are bf16, which `dot` multiplies. */
#define KVB_FLOATS8(X) X(e4m3, E4M3) X(e5m2, E5M2)
#define KVB_DOT_FLOATS(X) X(bf16, BF16) KVB_FLOATS8(X)

#endif
