"""The command ``serve``: live labels over HTTP, from a folder that holds everything."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ohmlearn._defaults import LABEL_EPSILON
from ohmlearn.cli import options as cli
from ohmlearn.cli.label_model import (
    CLASS_PRIOR,
    FEATURE_METHODS,
    GAMMA,
    METHODS,
    MODEL_KEYS,
    MODEL_KEYS_HELP,
    check_feature_options,
    feature_choices,
    model_choices,
)
from ohmlearn.cli.main import main
from ohmlearn.cli.messages import flag_of, tell

if TYPE_CHECKING:
    from ohmlearn.serve.service import Service
    from ohmlearn.serve.settings import Settings

file_path = click.Path(exists=True, dir_okay=False)
STORED = ("half_life", "horizon", "epsilon", "seed")  # when FOLDER is made
server = partial(cli.option, group="Server")
kafka = partial(cli.option, group="Kafka", needs="--kafka")
SERVER = (
    server(
        "--host", default="127.0.0.1", metavar="ADDRESS", common=True,
        help="Address to listen at. Others than this one need tokens.",
    ),
    server(
        "--port", type=click.IntRange(0, 65535), default=8377, common=True,
        help="Port to listen at; 0 means any free one.",
    ),
    server(
        "--token-file", type=file_path, common=True,
        help='File that says who may ask, with lines "read TOKEN" and "write TOKEN".',
    ),
    server(
        "--allow-host", multiple=True, metavar="NAME",
        help="Another name of this server, if it has no tokens; may be repeated.",
    ),
    server("--ssl-certfile", type=file_path, help="Certificate, for HTTPS."),
    server(
        "--ssl-keyfile", type=file_path, needs="--ssl-certfile", help="Key of the certificate."
    ),
    server("--check", is_flag=True, common=True, help="Only read and check all files of FOLDER."),
    server("--backup", metavar="DEST", common=True, help="Only copy FOLDER, which may be in use."),
    server(
        "--demo", is_flag=True, common=True,
        help="Replay a stream that drifts. Needs no FOLDER.",
    ),
    server(
        "--log-format", type=click.Choice(["json", "text"]), default="text",
        help="Format of the lines on the standard error.",
    ),
)  # fmt: skip
ANSWERS = (
    cli.option(
        "--event-id", metavar="COLUMN", group="Input",
        help="Column of event ids. Rows whose event was read before are left out and counted. The "
        "last 8,388,608 ids are remembered.",
    ),
    *cli.FEATURES,
    cli.option(
        "--passes", type=click.IntRange(1), default=1, group="Method",
        help="Number of passes over the edges for each answer; 1 uses the sparsifier alone.",
    ),
    cli.option(
        "--weight", metavar="COLUMN|none", group="Input",
        help="Column of the weights in bodies and messages, or a function of it: amount:log is "
        "log(1 + amount), amount:sqrt its square root. With none, all weights are 1. Stored with "
        "FOLDER.",
    ),
    cli.option(
        "--method", type=click.Choice([*METHODS, *FEATURE_METHODS]), group="Method", common=True,
        help="How labels are predicted, as for label: auto (default), harmonic or restart; with "
        "features logistic (default) or hist-gradient-boosting.",
    ),
    GAMMA,
    CLASS_PRIOR,
    cli.option(
        "--option", "rare", cls=cli.KeyValues, group="Method", keys=MODEL_KEYS, help=MODEL_KEYS_HELP
    ),
    cli.option(
        "--min-probability", type=cli.fraction, group="Method", common=True,
        help="Answer without a label where its probability is smaller; abstained is true there.",
    ),
    cli.option(
        "--answer-every", default="2s", metavar="DURATION", group="Method",
        help="Shortest time between two computations of the labels.",
    ),
    cli.option(
        "--answer-after", type=click.IntRange(1), default=1_000_000, metavar="EDGES",
        group="Method",
        help="Compute the labels earlier than that when this many edges have arrived.",
    ),
    cli.option(
        "--certify-every", default="10m", metavar="DURATION|never", group="Method",
        help="How often the sparsifier is compared with all edges.",
    ),
)  # fmt: skip
KAFKA = (
    kafka(
        "--kafka", metavar="HOST:PORT,...", needs="--topic", help="Read edges from these brokers."
    ),
    kafka("--topic", multiple=True, help="Topic to read; may be repeated."),
    kafka("--kafka-group", help="Consumer group. Default: one for the folder."),
    kafka("--kafka-config", type=file_path, help="File of properties of librdkafka."),
    cli.option(
        "--kafka-format", type=click.Choice(["json", "arrow"]), default="json", group="Kafka",
        help="Format of the messages.",
    ),
)  # fmt: skip


@main.command()
@click.argument("folder", type=click.Path(file_okay=False), required=False)
@cli.with_options(
    *SERVER,
    cli.epsilon_option(LABEL_EPSILON),
    *ANSWERS,
    *cli.FORGETTING[:2],
    *KAFKA,
    cli.SEED,
    cli.THREADS,
)
def serve(folder: str | None, check: bool, backup: str | None, demo: bool, **options: Any) -> None:
    """Label a live stream of edges over HTTP.

    \b
    ohmlearn serve payments.live --half-life 7d

    FOLDER holds everything. Edges are posted to /v1/edges, or read from Kafka. They are on disk
    before they are acknowledged. There is a page to watch at /. Started again, the server continues
    where it was.

    --half-life, --horizon, --epsilon and --seed are stored when FOLDER is made, and --event-id and
    --weight when they are given first; later they may be left out.
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
        from ohmlearn.serve.service_folder import check_folder_contents

        _print_facts(check_folder_contents(str(folder)))
        tell(f"{folder} is whole")
    elif backup is not None:
        from ohmlearn.serve.service_folder import backup as copy

        _print_facts(copy(str(folder), backup))
        tell(f"{folder} was copied to {backup}, and the copy is whole")
    elif demo:
        with tempfile.TemporaryDirectory(prefix="ohmlearn-demo-") as temporary:
            _run_demo(f"{temporary}/demo", options)
    else:
        _listen(str(folder), _read_settings(options), options, _read_kafka(options))


def _print_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items() if item is not None)
        word = name.removeprefix("n_").replace("_", " ").capitalize()
        shown = f"{value:,}" if isinstance(value, int) else "none" if value is None else value
        click.echo(f"{word:<13}{shown}")


def _read_settings(options: cli.Options) -> "Settings":
    from ohmlearn.checks.times import check_duration
    from ohmlearn.serve.settings import Settings

    stored = {name: options[name] if cli.was_given(name) else None for name in STORED}
    every, pause = options["certify_every"], options["answer_every"]
    same = {name: options[name] for name in ("event_id", "passes", "weight", "min_probability")}
    return Settings(
        half_life=_as_duration("half_life", stored["half_life"]),
        window=_as_duration("window", stored["horizon"]),
        epsilon=stored["epsilon"],
        seed=stored["seed"],
        certify_every=None if every == "never" else _as_duration("certify_every", every),
        every_seconds=0.0 if cli.as_moment(pause) == 0.0 else check_duration("answer_every", pause),
        every_edges=options["answer_after"],
        n_jobs=options["threads"],
        **same,
        **_read_model(options),
    )


def _read_model(options: cli.Options) -> dict[str, Any]:
    """Return the parameters of both models, of edges alone and of features, which may be posted."""
    path, refused = options["features_file"], ""
    try:
        check_feature_options({**options, "features_file": path or "posted"})
    except click.UsageError as error:
        if path is not None:
            raise
        refused = error.message
    names = {"node_col": "feature_node_col", "columns": "feature_cols", "path": "features_file"}
    features = {name: options[key] for name, key in names.items()}
    features |= {"refused": refused, "model": feature_choices(options)}
    alone = {**options, "features_file": None}
    if path is not None or options["method"] in FEATURE_METHODS:  # then these are about features
        alone |= {"method": None, "gamma": None}
    return {"model": model_choices(alone, {}), "features": features}


def _as_duration(name: str, given: str | float | None) -> str | float | None:
    """Return a duration; "10m" is minutes, as everybody would expect."""
    from ohmlearn.checks.times import check_duration

    found = cli.as_moment(given) if isinstance(given, str) else given
    if isinstance(found, str) and isinstance(cli.as_moment(found.removesuffix("m")), float):
        found += "in"
    if found is not None:
        check_duration(name, found)
    return found


def _read_kafka(options: cli.Options) -> "Callable[[Service], Callable[[], None]]":
    """Return what starts a consumer, if there is --kafka, and returns what stops it."""
    if options["kafka"] is None:
        return lambda _: lambda: None
    from ohmlearn.checks.parameters import require_extra

    require_extra("confluent_kafka", "serve")
    from ohmlearn.serve.kafka_consumer import Consumer, read_config

    file = options["kafka_config"]
    how = {
        "bootstrap": options["kafka"], "topics": list(options["topic"]),
        "group": options["kafka_group"], "form": options["kafka_format"],
        "config": read_config(file) if file else None,
    }  # fmt: skip

    def start(service: "Service") -> Callable[[], None]:
        service.kafka = consumer = Consumer(service, **how)
        consumer.start()
        return consumer.stop

    return start


def _run_demo(folder: str, options: cli.Options) -> None:
    import threading

    from ohmlearn.serve import demo_feed

    for name in (*STORED, "event_id", "features_file", "weight", "kafka", "topic", "answer_every"):
        if cli.was_given(name):
            raise click.UsageError(f"--demo has settings of its own; leave out {flag_of(name)}")
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
    options: cli.Options,
    start: "Callable[[Service], Callable[[], None]]",
) -> None:
    from ohmlearn.serve.http_auth import Tokens, check_listening, is_open_to_others
    from ohmlearn.serve.http_logs import logs_to
    from ohmlearn.serve.http_runner import run
    from ohmlearn.serve.service import Service

    path = options["token_file"]
    if path is not None and is_open_to_others(path):
        tell(f"Warning: other users can read {path}; use: chmod 600 {path}")
    tokens = None if path is None else Tokens.read(path)
    check_listening(options["host"], tokens)  # before the folder is made
    with logs_to(options["log_format"]), ExitStack() as stack:
        service = Service(folder, settings)
        stack.callback(service.stop)  # a second time, unless the server could not be started
        how = {name: options[name] for name in ("host", "port", "ssl_certfile", "ssl_keyfile")}
        how |= {"tokens": tokens, "hosts": options["allow_host"]}
        run(service, when_started=lambda: start(service), announce=click.echo, **how)
