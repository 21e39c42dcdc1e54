"""The command ``serve``: live labels over HTTP, from a folder that holds everything."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import as_moment, fraction
from ohmlearn.cli.main import main, was_given
from ohmlearn.cli.messages import tell
from ohmlearn.cli.threads_option import threads_option

if TYPE_CHECKING:
    from ohmlearn.serve.http_auth import Tokens
    from ohmlearn.serve.service import Service
    from ohmlearn.serve.settings import Settings

__all__ = ["serve"]

file_path = click.Path(exists=True, dir_okay=False)
OPTIONS = (
    click.option("--host", default="127.0.0.1", help="Address; others than this need tokens."),
    click.option("--port", type=click.IntRange(0, 65535), default=8377, help="0 for any free one."),
    click.option("--half-life", help="Edges count half as much after this time, such as 7d."),
    click.option("--window", help="Only edges of this time count, such as 30d."),
    click.option("--epsilon", type=fraction, help="Accuracy of the sparsifier; 0.8."),
    click.option(
        "--event-id",
        metavar="COLUMN",
        help="Column of event ids: rows whose event was read before are left out, and counted. "
        "The last 8,388,608 ids are remembered.",
    ),
    click.option(
        "--passes",
        type=click.IntRange(1),
        default=1,
        help="Passes over the edges for each answer; 1 uses the sparsifier alone.",
    ),
    click.option(
        "--certify-every",
        default="10m",
        help="How often the sparsifier is compared with all edges, or never.",
    ),
    click.option(
        "--every-seconds",
        type=click.FloatRange(0.0),
        default=2.0,
        help="Compute labels again at most so often,",
    ),
    click.option(
        "--every-edges",
        type=click.IntRange(1),
        default=1_000_000,
        help="or earlier, after so many new edges.",
    ),
    click.option(
        "--token-file",
        type=file_path,
        help='Who may ask: lines "read TOKEN" and "write TOKEN".',
    ),
    click.option(
        "--allow-host",
        multiple=True,
        metavar="NAME",
        help="Another name of this server, if it has no tokens; may be repeated.",
    ),
    click.option("--kafka", metavar="BOOTSTRAP", help="Read edges from Kafka at HOST:PORT,..."),
    click.option("--topic", multiple=True, help="Topic to read; may be repeated."),
    click.option("--kafka-group", help="Consumer group; one for the folder by default."),
    click.option("--kafka-config", type=file_path, help="File of properties of librdkafka."),
    click.option(
        "--kafka-format",
        type=click.Choice(["json", "arrow"]),
        default="json",
        help="What is in a message.",
    ),
    click.option("--ssl-certfile", type=file_path, help="Certificate, to serve HTTPS."),
    click.option("--ssl-keyfile", type=file_path, help="Its key."),
    threads_option,
    click.option("--check", is_flag=True, help="Only read and check all files of FOLDER."),
    click.option("--backup", metavar="DEST", help="Only copy FOLDER, which may be in use."),
    click.option("--demo", is_flag=True, help="Replay a stream that drifts; needs no FOLDER."),
    click.option(
        "--log-format",
        type=click.Choice(["json", "text"]),
        default="text",
        help="Form of the lines on the standard error.",
    ),
    click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Random seed; 0."),
)


def serve_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@main.command()
@click.argument("folder", type=click.Path(file_okay=False), required=False)
@serve_options
def serve(folder: str | None, check: bool, backup: str | None, demo: bool, **options: Any) -> None:
    """Label a live stream of edges over HTTP; FOLDER holds everything.

    Edges are posted to /v1/edges, or read from Kafka. They are on disk before they are
    acknowledged. There is a page to watch at /. Started again, it continues where it was.

    --half-life, --window, --epsilon and --seed are stored when FOLDER is made, and --event-id when
    it is given first; later they may be left out.
    """
    if sum([check, backup is not None, demo]) > 1:
        raise click.UsageError("--check, --backup and --demo exclude each other; give one of them")
    if folder is None and not demo:
        raise click.UsageError("give a FOLDER, or --demo")
    if folder is not None and demo:
        raise click.UsageError("--demo has a folder of its own; leave out FOLDER")
    from ohmlearn.checks.parameters import require_extra

    for module in ("starlette", "uvicorn", "prometheus_client", "pyarrow"):
        require_extra(module, "serve")
    if check:
        _check(str(folder))
    elif backup is not None:
        _backup(str(folder), backup)
    elif demo:
        with tempfile.TemporaryDirectory(prefix="ohmlearn-demo-") as temporary:
            _run_demo(f"{temporary}/demo", options)
    else:
        _run(str(folder), _read_settings(options), options, _read_kafka(options))


def _check(folder: str) -> None:
    from ohmlearn.serve.service_folder import check_folder_contents

    _print_facts(check_folder_contents(folder))
    tell(f"{folder} is whole")


def _backup(folder: str, target: str) -> None:
    from ohmlearn.serve.service_folder import backup

    _print_facts(backup(folder, target))
    tell(f"{folder} was copied to {target}, and the copy is whole")


def _print_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items() if item is not None)
        word = name.removeprefix("n_").replace("_", " ").capitalize()
        shown = f"{value:,}" if isinstance(value, int) else "none" if value is None else value
        click.echo(f"{word:<13}{shown}")


def _read_settings(options: dict[str, Any]) -> "Settings":
    from ohmlearn.serve.settings import Settings

    every = options["certify_every"]
    return Settings(
        half_life=_as_duration("half_life", options["half_life"]),
        window=_as_duration("window", options["window"]),
        epsilon=options["epsilon"],
        seed=options["seed"],
        event_id=options["event_id"],
        passes=options["passes"],
        certify_every=None if every == "never" else _as_duration("certify_every", every),
        every_seconds=options["every_seconds"],
        every_edges=options["every_edges"],
        n_jobs=options["threads"],
    )


def _as_duration(name: str, text: str | None) -> str | float | None:
    """Return a duration; "10m" is minutes, as everybody would expect."""
    from ohmlearn.checks.times import check_duration

    if text is not None and text.endswith("m") and text[:-1].replace(".", "", 1).isdecimal():
        text += "in"
    found = as_moment(text)
    if found is not None:
        check_duration(name, found)
    return found


def _read_kafka(options: dict[str, Any]) -> "Callable[[Service], Any] | None":
    """Return a function that makes a consumer, if there is --kafka."""
    if options["kafka"] is None:
        for name in ("topic", "kafka_group", "kafka_config"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --kafka")
        return None
    if not options["topic"]:
        raise click.UsageError("--kafka needs --topic")
    from ohmlearn.checks.parameters import require_extra

    require_extra("confluent_kafka", "serve")
    from ohmlearn.serve.kafka_consumer import Consumer, read_config

    config = read_config(options["kafka_config"]) if options["kafka_config"] else None

    def make(service: "Service") -> Any:
        return Consumer(
            service,
            bootstrap=options["kafka"],
            topics=list(options["topic"]),
            group=options["kafka_group"],
            form=options["kafka_format"],
            config=config,
        )

    return make


def _read_tokens(path: str | None) -> "Tokens | None":
    if path is None:
        return None
    from ohmlearn.serve.http_auth import Tokens, is_open_to_others

    if is_open_to_others(path):
        tell(f"Warning: other users can read {path}; use: chmod 600 {path}")
    return Tokens.read(path)


def _run(
    folder: str,
    settings: "Settings",
    options: dict[str, Any],
    make_consumer: "Callable[[Service], Any] | None" = None,
) -> None:
    def start_consumer(service: "Service") -> Callable[[], None]:
        if make_consumer is None:
            return lambda: None
        consumer = make_consumer(service)
        service.kafka = consumer
        consumer.start()
        stop: Callable[[], None] = consumer.stop
        return stop

    _listen(folder, settings, options, start_consumer)


def _run_demo(folder: str, options: dict[str, Any]) -> None:
    import threading

    from ohmlearn.serve import demo_feed

    own = ("half_life", "window", "epsilon", "event_id", "kafka", "topic", "seed", "every_seconds")
    for name in own:
        if was_given(name):
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"--demo has settings of its own; leave out {option}")
    stop = threading.Event()

    def start_feeder(service: "Service") -> Callable[[], None]:
        feeder = threading.Thread(target=demo_feed.run_feeder, args=(service, stop), name="demo")
        feeder.start()

        def stop_feeder() -> None:
            stop.set()
            feeder.join()

        return stop_feeder

    _listen(folder, demo_feed.settings(), options, start_feeder)


def _listen(
    folder: str,
    settings: "Settings",
    options: dict[str, Any],
    start: "Callable[[Service], Callable[[], None]]",
) -> None:
    if (options["ssl_keyfile"] is not None) and options["ssl_certfile"] is None:
        raise click.UsageError("--ssl-keyfile needs --ssl-certfile")
    from ohmlearn.serve.http_auth import check_listening
    from ohmlearn.serve.http_logs import logs_to
    from ohmlearn.serve.http_runner import run

    tokens = _read_tokens(options["token_file"])
    check_listening(options["host"], tokens)  # before the folder is made
    with logs_to(options["log_format"]), _open(folder, settings) as service:
        run(
            service,
            host=options["host"],
            port=options["port"],
            tokens=tokens,
            hosts=options["allow_host"],
            ssl_certfile=options["ssl_certfile"],
            ssl_keyfile=options["ssl_keyfile"],
            when_started=lambda: start(service),
            announce=click.echo,
        )


@contextmanager
def _open(folder: str, settings: "Settings") -> "Iterator[Service]":
    from ohmlearn.serve.service import Service

    service = Service(folder, settings)
    try:
        yield service
    finally:
        service.stop()  # a second time, unless the server could not be started
