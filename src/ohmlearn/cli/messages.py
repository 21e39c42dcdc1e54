"""Messages with control characters escaped."""

import click

__all__ = ["tell", "visible"]


def visible(text: str) -> str:
    r"""Return text in which control characters, such as escape sequences, are written out.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\nc, naïve ±"))
    a\x1b[31mb\nc, naïve ±
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def tell(*lines: str) -> None:
    """Print lines to the standard error; control characters in them are made visible."""
    for line in lines:
        click.echo(visible(line), err=True)
