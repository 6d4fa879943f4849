"""Each alert of the charts, driven once by the real product: it fires, and what its page says ends it."""
