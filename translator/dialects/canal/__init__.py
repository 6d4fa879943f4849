"""Canal JSON ("flat message"): open-source canal, and Alibaba DTS before and since March 2022 (docs/formats/canal.md).

The message contains neither its writer nor a version, and writers disagree on the meaning of the same shape. The writer
is therefore declared (`profile`), and a message that contradicts this declaration becomes a dead letter.
"""

from translator.dialects.canal.decode import Canal

__all__ = ["Canal"]
