"""What the service refuses, as errors of HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ohmlearn.edge_log import LogError
from ohmlearn.serve.decode_edges import BadBody
from ohmlearn.serve.http_replies import HttpError
from ohmlearn.serve.serve_errors import Busy, Gone, Refused

__all__ = ["refusals"]


@contextmanager
def refusals() -> Iterator[None]:
    """Let clients know why something was refused."""
    try:
        yield
    except BadBody as error:
        raise HttpError(400, str(error), row=error.row) from None
    except Busy as error:
        raise HttpError(429, str(error), retry_after=error.retry_after) from None
    except Refused as error:
        retry_after = 5.0 if error.status in (503, 507) else None
        raise HttpError(error.status, str(error), retry_after=retry_after) from None
    except Gone as error:
        raise HttpError(410, str(error)) from None
    except LogError:  # a damaged file, whose name is for the log of the server only
        raise
    except ValueError as error:
        raise HttpError(400, " ".join(str(error).split())) from None
