"""Build the parts of a release (packages, images, charts and the bill of materials), and check them with tools."""
