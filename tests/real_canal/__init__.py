"""A real Canal on a real database: MariaDB, Canal, Kafka, translator, sink. At the end, every cell in the lakehouse is
compared with the database, for both paths of the translator and both table formats.

The SQL files in `workload` are grouped by the number in their names: the files of a group are executed in the order of
their names.
"""
