"""The sink on an object store: a real S3 server on a folder of this machine."""
