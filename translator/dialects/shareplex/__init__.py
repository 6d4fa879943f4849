"""Read SharePlex JSON: `{"meta":{...},"data":{...}[,"key":{...}]}`, one object per change.

Three writers share this structure but differ in details: Quest SharePlex Post, its imitation in Alibaba DTS, and the
one in OceanBase OMS, for which no sample was found (§0 and 8). A preset (`options.py`) describes the differences. They
are never guessed from the content. No public sample shows DDL, LOB pieces or before/after pairs.
"""

from translator.dialects.shareplex.decode import SharePlex

__all__ = ["SharePlex"]
