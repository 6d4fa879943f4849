"""The parts of a release (packages, images, charts and the bill of materials), and the tools that check them."""
