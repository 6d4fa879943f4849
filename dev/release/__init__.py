"""The parts of a release: packages, images, charts, the bill of materials, and the tools that check them."""
