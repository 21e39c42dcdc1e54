"""Who is let in: tokens on every endpoint, and pages of other sites on a server without tokens."""

import pytest

pytest.importorskip("starlette")

from serve_http import READ, REQUESTS, WRITE, StandIn, serve

from ohmlearn.serve.http_auth import PUBLIC, Tokens, check_listening, is_open_to_others

IDS = [f"{method} {path}" for method, path, *_ in REQUESTS]


@pytest.fixture(scope="module")
def guarded():
    with serve(StandIn(), tokens=Tokens({READ: "read", WRITE: "write"})) as client:
        yield client


@pytest.fixture(scope="module")
def local():
    with serve(StandIn(), hosts=["Labels.example"]) as client:
        yield client


def is_reading(method, path):
    return method == "GET" or path == "/v1/labels:lookup"


@pytest.mark.parametrize("request_", REQUESTS, ids=IDS)
def test_tokens_on_every_endpoint(guarded, request_):
    method, path, headers, body = request_

    def ask(**more):
        return guarded.ask(method, path, body, {**headers, **more})

    wrong = (
        {},
        {"Authorization": f"Bearer {WRITE}x"},
        {"Authorization": f"Bearer {WRITE[:-1]}"},
        {"Authorization": f"Basic {WRITE}"},
        {"Authorization": WRITE},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer ÿ"},
        {"Cookie": f"token={WRITE}"},
    )
    for more in wrong:
        answer = ask(**more)
        if path in PUBLIC:
            assert answer.status == 200
        else:
            assert answer.status == answer.json["error"]["status"] == 401
            assert answer.headers["www-authenticate"] == "Bearer"
    answer = ask(Authorization=f"Bearer {READ}")
    assert answer.status == (200 if is_reading(method, path) else 403)
    if answer.status == 403:
        assert "this needs a write token" in answer.message
    assert ask(Authorization=f"bearer  {WRITE}").status == 200


def test_public_paths_are_public_for_reading_only(guarded):
    for path in PUBLIC:
        assert guarded.ask("POST", path).status == 401
        assert guarded.ask("POST", path, Authorization=f"Bearer {WRITE}").status == 405
        assert guarded.ask("HEAD", path).status == 200
    near = ("//", "/page", "/page/page.css/", "/page/..", "/page/../v1/status", "/v1/../", "/%2e")
    for path in (*near, "/healthz/../v1/status", "/no-such"):
        assert guarded.get(path).status == 401  # nothing is said about what exists
    assert guarded.ask("HEAD", "/v1/status").status == 401


def test_tokens_do_not_care_about_names_and_origins(guarded):
    more = {"Host": "labels.example", "Origin": "https://evil.example"}
    answer = guarded.get("/v1/status", Authorization=f"Bearer {READ}", **more)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers


HOSTS = [
    ("127.0.0.1:8377", 200),
    ("LOCALHOST", 200),
    ("localhost.:1", 200),
    ("[::1]:8377", 200),
    ("127.9.9.9", 200),
    ("labels.example:80", 200),
    ("evil.example", 403),
    ("127.0.0.1.evil.example", 403),
    ("localhost.evil.example", 403),
    ("", 403),
    ("0.0.0.0", 403),
    ("[::1", 200),
    ("[evil]", 403),
]


@pytest.mark.parametrize(("host", "status"), HOSTS)
def test_names_of_a_server_without_tokens(local, host, status):
    assert local.get("/v1/status", Host=host).status == status
    assert local.get("/", Host=host).status == status


def test_a_request_without_or_with_two_names_is_refused(local):
    assert b" 403 " in local.send_raw(b"GET /v1/status HTTP/1.0\r\n\r\n")
    two = b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"
    assert b" 400 " in local.send_raw(two + b"Connection: close\r\n\r\n")


ORIGINS = [
    ({}, 200),
    ({"Origin": "http://localhost:8377"}, 200),
    ({"Origin": "https://LOCALHOST:8377"}, 200),
    ({"Origin": "http://localhost:3000"}, 403),  # another server of this machine
    ({"Origin": "http://localhost"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://localhost:8377", "Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), ORIGINS)
def test_pages_of_other_sites_are_refused(local, headers, status):
    for method, path, own, body in REQUESTS:
        answer = local.ask(method, path, body, {**own, "Host": "localhost:8377", **headers})
        is_probe = path in ("/healthz", "/readyz")
        assert answer.status == (200 if is_probe else status), path
        if answer.status == 403:
            assert answer.message == "requests from pages of other sites are refused"


def test_a_link_on_another_site_shows_the_page_only(local):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert local.get("/", **link, **{"Sec-Fetch-Dest": "document"}).status == 200
    assert local.get("/", **link, **{"Sec-Fetch-Dest": "iframe"}).status == 403
    assert local.get("/v1/export", **link, **{"Sec-Fetch-Dest": "document"}).status == 403


def test_preflights_are_not_answered(local, guarded):
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert local.ask("OPTIONS", "/v1/edges", **asked).status == 403
    assert guarded.ask("OPTIONS", "/v1/edges", **asked).status == 401


def test_token_file(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# who\n\nwrite {WRITE} # me\n  read\t{READ}\n")
    tokens = Tokens.read(file)
    assert (tokens.scope_of(WRITE), tokens.scope_of(READ)) == ("write", "read")
    assert tokens.scope_of("") is tokens.scope_of("write") is None
    assert WRITE not in repr(tokens) + repr(vars(tokens))
    file.chmod(0o644)
    assert is_open_to_others(file)
    file.chmod(0o600)
    assert not is_open_to_others(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no token"),
        ("# only\n", "has no token"),
        ("admin 0123456789abcdef", 'line 1: expected "read TOKEN" or "write TOKEN"'),
        ("\nread", 'line 2: expected "read TOKEN"'),
        ("read a b", "line 1: expected"),
        ("read secret", "line 1: the token has 6 characters, but 16 are needed"),
        ("read sécret-sécret-sécret", "characters other than printable ASCII"),
        ("read 0123456789abcdef\nwrite 0123456789abcdef", "line 2: the token is in an earlier"),
        (b"\xff\xfe", "is not a text file in UTF-8"),
    ],
)
def test_wrong_token_files(tmp_path, text, message):
    file = tmp_path / "tokens"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="tokens") as caught:
        Tokens.read(file)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value).replace(str(tmp_path), "")


def test_other_machines_need_a_token():
    tokens = Tokens({WRITE: "write"})
    for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3"):
        check_listening(host, None)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        check_listening(host, tokens)
        with pytest.raises(ValueError, match="can be reached by other machines"):
            check_listening(host, None)
