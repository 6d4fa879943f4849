"""Each alert of the charts, triggered once with the real product and resolved with the steps of its page."""
