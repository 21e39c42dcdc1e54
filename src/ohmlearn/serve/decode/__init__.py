"""Bodies of requests and messages become batches of edges."""

from ohmlearn.serve.decode.edges import FORMS, BadBody, Form, decode_edges

__all__ = ["FORMS", "BadBody", "Form", "decode_edges"]
