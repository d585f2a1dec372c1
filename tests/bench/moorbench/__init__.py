"""The parts of the benchmark: moorfs and its peers side by side over one private server."""
