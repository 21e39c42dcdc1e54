"""The HTTP side of a service: requests, answers, who may ask, limits."""
