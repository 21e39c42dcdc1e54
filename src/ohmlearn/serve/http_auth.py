"""Who may ask for what: tokens, and the rules for a server that has none.

A server without tokens listens on loopback addresses only. Every page that the user's browser shows
could send requests there, so these are refused unless they come from the server's own page or not
from a browser at all. Two headers, which no page can forge, show this: ``Origin`` and
``Sec-Fetch-Site``. The header ``Host`` must be a loopback name, because a foreign name could be
made to point to this machine (DNS rebinding). With tokens none of this is needed: no page knows a
token, and there are no cookies that a browser would send by itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from ohmlearn.errors import InputError, Param
from ohmlearn.serve.http_table import PAGE
from ohmlearn.serve.serve_errors import Refused

Scope = Literal["read", "write"]
SHORTEST = 16  # characters of a token
# What needs no token: the page itself, which has no data in it, and probes of supervisors.
PUBLIC = frozenset({*PAGE, "/healthz", "/readyz"})
READING = frozenset({"GET", "HEAD"})
PROBES = frozenset({"/healthz", "/readyz"})  # which tell nothing but whether the server works
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Tokens:
    """The tokens of a file, and what each allows: "read" or "write".

    Only their digests are kept. How long it takes to look one up says nothing about the tokens.
    """

    def __init__(self, scopes: Mapping[str, Scope]) -> None:
        self._scopes = {_digest(token): scope for token, scope in scopes.items()}

    def __repr__(self) -> str:
        return f"Tokens({len(self._scopes)})"

    def scope_of(self, token: str) -> Scope | None:
        """Return what a token allows, or None if it is not known."""
        return self._scopes.get(_digest(token))

    @classmethod
    def read(cls, path: str | Path) -> Tokens:
        """Read a file with lines such as "write 3f9c0e..."; # starts a comment.

        An error names the line, but not the token.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file in UTF-8") from None
        scopes: dict[str, Scope] = {}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            where = f"{path}, line {number}"
            if len(words) != 2 or words[0] not in ("read", "write"):
                raise ValueError(f'{where}: expected "read TOKEN" or "write TOKEN"')
            scope: Scope = "read" if words[0] == "read" else "write"
            token = words[1]
            if len(token) < SHORTEST:
                raise ValueError(
                    f"{where}: the token has {len(token)} characters, but {SHORTEST} are needed; "
                    f"make one with: openssl rand -hex 24"
                )
            if not (token.isascii() and token.isprintable()):
                raise ValueError(f"{where}: the token has characters other than printable ASCII")
            if token in scopes:
                raise ValueError(f"{where}: the token is in an earlier line, too")
            scopes[token] = scope
        if not scopes:
            raise ValueError(f'{path} has no token; write a line such as "write TOKEN"')
        return cls(scopes)


def is_open_to_others(path: str | Path) -> bool:
    """Whether other users of this machine may read a file."""
    return bool(os.stat(path).st_mode & 0o077)


class Access:
    """Decides whether a request is allowed; `hosts` are names besides those of loopback."""

    def __init__(self, tokens: Tokens | None, hosts: Collection[str] = ()) -> None:
        self._tokens = tokens
        self._hosts = LOOPBACK_NAMES | {host.lower().strip("[]").rstrip(".") for host in hosts}

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise Refused if a request is not allowed."""
        if self._tokens is not None:
            self._check_token(self._tokens, method, path, headers.get("authorization"))
        elif path not in PROBES or method not in READING:  # load balancers may send no name
            self._check_host(headers.get("host", ""))
            self._check_origin(method, path, headers)

    def _check_token(self, tokens: Tokens, method: str, path: str, given: str | None) -> None:
        if path in PUBLIC and method in READING:
            return
        challenge = {"WWW-Authenticate": "Bearer"}
        kind, _, token = (given or "").partition(" ")
        if kind.lower() != "bearer":
            message = "a token is needed; send the header Authorization: Bearer TOKEN"
            raise Refused(401, message, headers=challenge)
        scope = tokens.scope_of(token.strip())
        if scope is None:
            raise Refused(401, "the token is not known", headers=challenge)
        if scope != "write" and not (
            method in READING or (method == "POST" and path == "/v1/labels:lookup")
        ):
            raise Refused(403, "the token allows reading only; this needs a write token")

    def _check_host(self, host: str) -> None:
        name = _host_name(host)
        if name not in self._hosts and not is_loopback(name):
            raise Refused(
                403,
                f"this server does not answer to the name {name!r}; to allow it, start the server "
                f"with --allow-host NAME",
            )

    def _check_origin(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None:
            # The same name and port: another server of this machine is foreign, too.
            here = headers.get("host", "").lower()
            foreign = origin.lower() not in (f"http://{here}", f"https://{here}")
        else:
            # The user may follow a link, which shows the page and nothing else.
            going = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
            is_link = path in PUBLIC and method in READING and going == ("navigate", "document")
            foreign = site not in ("none", "same-origin") and not is_link
        if foreign:
            raise Refused(403, "requests from pages of other sites are refused")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _host_name(host: str) -> str:
    """Return the name in a header Host, without its port and in small letters."""
    host = host.strip().lower()
    if host.startswith("["):  # an IPv6 address
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether a name or address is one of this machine only, without asking any server."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_listening(host: str, tokens: Tokens | None) -> None:
    """Refuse to listen where other machines could connect, unless there are tokens."""
    if tokens is not None:
        return
    if is_loopback(host):
        addresses = [host]
        if host.lower() == "localhost":  # it may be set to anything in /etc/hosts
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses = [str(address[0]) for *_, address in found]
        if all(is_loopback(address) for address in addresses):
            return
    raise InputError(
        f"{Param('host', host)} can be reached by other machines, which needs a "
        f"{Param('token_file')}; without one, listen on 127.0.0.1"
    )
