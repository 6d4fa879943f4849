"""Read Canal JSON ("flat message") from open-source canal, and from Alibaba DTS both before and since March 2022
(docs/formats/canal.md).

A message identifies neither its writer nor a version, and writers give different meanings to the same shape. The
operator therefore declares the writer (`profile`), and a message that contradicts this declaration becomes a dead
letter.
"""

from translator.dialects.canal.decode import Canal

__all__ = ["Canal"]
