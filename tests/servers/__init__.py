"""Real servers for the tests: each is a context manager that starts a throw-away server on a
free loopback port, with its own keys and configuration, and ends it by its process id."""
