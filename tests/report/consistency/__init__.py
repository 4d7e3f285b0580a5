"""An outside witness of a report: it reads what people read, and finds what cannot be true
together. It imports nothing of the package.

`reading` makes a `Report` of the page, the figures' CSV, the terminal's text and the JSON.
`collected` takes claims from it: of what, which quantity, how much, held against what. Two that
differ beyond rounding are a conflict, by the name of their quantity. `rules` and `named` have what
no two claims show: a superlative that the table beside it refutes, a word that its shares do not
bear.

A page of July's format had the kinds of contradiction below, found by an audit. Those of its own
are found in `zen4-kvm-2-745fd4b.tar.gz`: that page, without pictures, scripts and styles. For the
others one is planted in the test.

| kind | what is said twice | rule or quantity | where it is found |
|---|---|---|---|
| a | a ratio of dtypes of other kernels than the bars' | dtype_ratio | old page |
| b | the same, of those pairs alone that were timed together: one rule with a | dtype_ratio | old |
| c | what L3 gives, by the luckiest layout and by the clearest | L3 gain | old page |
| d | a line of progress holds a point against another read than the page | progress | planted |
| e | "up to" a median that intervals exceed | up_to | old page |
| f | a variant is faster by a ratio that holds for no dtype | every_value | old page |
| g | the fastest layout, and another in the table of dtypes | fastest | old page |
| h | the fastest of a single dtype | only_one | old page |
| i | what limits a dtype, in two places | limit | old page |
| j | a word for what limits, and shares that do not bear it | limit_word | old page |
| k | layouts that are alike, and clearly differ in the table | pays_back | planted |
| l | a forecast that is the least that can be said | enough_launches | old page |
| m | a peak that the kernel's own instructions exceed | peak | old page |
| n | a rate, a ratio and a rate whose quotient it is not | tile_quotient | old page |
| o | a store's share of a copy, by pairs and by medians | share of a copy | old page |
| p | a rate of threads without its context | point_named | old page |
| q | points above a limit: counted, listed, drawn | above a limit, suspects | old page |
| r | reads of memory, plain and the best form, under one name | memory read | old page |
| s | "varied by", for the width of an interval | varied | old page |
| t | an error that is not the format's | error_named | old page |
| u | a share of a read in other visits, and of one beside it | share beside it | old page |
| v | tokens/s of `size` and of the page | tokens/s | planted |
| w | "not timed side by side", and "yes" in the table | side by side | old page |
| x | a ratio, and the quotient of the two points' rates | pairs | old page |
| y | left out because too few remain | left_out | planted |
| z | launches of the run, and of its points | launches | old page |
| aa | a rate of the core alone that varies twofold | core_rate | planted |
| bb | a share of core speed in the figure and in the table | share | old page |
| cc | tokens that fit in L3, of a format that is not named | fits_named | planted |
| dd | "helps": over plain reads, and over decode from memory | helps | old page |
| ee | tuned below untuned | untuned | planted |
"""
