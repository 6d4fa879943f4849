"""The sink on an object store: real S3, on a folder of this machine."""
