"""Read and write tables in every format through a common protocol."""
