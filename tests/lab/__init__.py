"""A network laboratory on one machine: real sockets and processes on links that can be cut, slow, lossy or unruly."""
