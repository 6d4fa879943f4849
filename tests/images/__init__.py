"""Run the images of the Dockerfile as the charts do. `make image-check` builds them."""
