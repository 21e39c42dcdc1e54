"""Live labels of a stream of events, over HTTP."""
