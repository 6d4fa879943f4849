"""What makes up a release: packages, images, charts, the bill of materials, and the tools that check them."""
