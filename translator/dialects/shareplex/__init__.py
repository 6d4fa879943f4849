"""SharePlex JSON: `{"meta":{...},"data":{...}[,"key":{...}]}`, one object per change.

Three writers share that skeleton and differ inside: Quest SharePlex Post, the imitation of Alibaba DTS, and the one of
OceanBase OMS, of which no sample was found (§0 and 8). What differs is a preset
(`options.py`), never a guess from the content. No public sample shows DDL, LOB pieces or before/after pairs.
"""

from translator.dialects.shareplex.decode import SharePlex

__all__ = ["SharePlex"]
