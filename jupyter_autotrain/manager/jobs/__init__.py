"""Jobs at one backend, followed by a thread of their own: polled, read, and told to the main thread as events."""
