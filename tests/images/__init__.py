"""The images of the Dockerfile, run as the charts run them; `make image-check` builds them."""
