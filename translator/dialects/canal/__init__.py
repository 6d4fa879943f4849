"""Canal JSON ("flat message"): open-source canal, and Alibaba DTS before and since March 2022 (docs/formats/canal.md).

The message names neither its writer nor a version, and writers disagree on what the same shape means, so the writer
is declared (`profile`) and a message that contradicts itself under that declaration is a dead letter.
"""

from translator.dialects.canal.decode import Canal

__all__ = ["Canal"]
