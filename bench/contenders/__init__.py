"""One file per contender; each runs in a process of its own, under the interpreter that has its library.

The protocol is `bench.contenders.protocol`. Nothing here imports Frazil.
"""
