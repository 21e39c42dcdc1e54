"""The options of all commands, each written once, and how the help shows them: in groups."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from ohmlearn.cli.messages import shows_progress

ARGUMENTS = "ohmlearn.arguments"  # where the context of a command has those that were given
Options = dict[str, Any]  # the options of a command, by the names of its parameters
GROUPS = ("Input", "Output", "Method", "Time", "Continue", "Server", "Kafka", "Machine", "Options")
# Options of earlier versions, and what to use instead.
RENAMED = {
    "--source-col": "--from", "--target-col": "--to", "--weight-col": "--weight",
    "--node-col": "--read-labels node=", "--label-col": "--read-labels label=",
    "--format": "--read format=", "--id-type": "--read id_type=",
    "--header": "--read header=yes", "--no-header": "--read header=no",
    "--delimiter": "--read delimiter=", "--comment": "--read comment=",
    "--normalization": "--option normalization=", "--csv-safe": "--option csv_safe=yes",
    "--scheme": "--option scheme=", "--constants": "--option constants=",
}  # fmt: skip


class Option(click.Option):
    """An option in a group of the help; ``--help`` shows only those that are common.

    Without the option that it `needs`, it is refused.
    """

    def __init__(self, *names: Any, group: str = "Options", **more: Any) -> None:
        self.group, self.common = group, more.pop("common", False)
        self.needs: str = more.pop("needs", "")
        super().__init__(*names, **more)
        if self.metavar is None and isinstance(self.type, click.IntRange | click.FloatRange):
            self.metavar = "N" if isinstance(self.type, click.IntRange) else "FRACTION"

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what follows the help in brackets; not the range of a number."""
        return {name: one for name, one in super().get_help_extra(ctx).items() if name != "range"}

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the value."""
        if self.needs and self.name in opts:
            needed = next(one.name for one in ctx.command.params if self.needs in one.opts)
            if needed not in opts:
                raise click.UsageError(f"{self.opts[0]} needs {self.needs}")
        return super().handle_parse_result(ctx, opts, args)


class KeyValues(Option):
    """An option KEY=VALUE that may be repeated; each key sets a parameter of the command.

    `keys` has for each key the name of the parameter, a type of click, and the default.
    """

    def __init__(self, *names: Any, keys: dict[str, tuple[str, Any, Any]], **more: Any) -> None:
        super().__init__(*names, multiple=True, metavar="KEY=VALUE", **more)
        self.keys = keys

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Set the parameters of all keys."""
        given = super().process_value(ctx, value)
        ctx.params.update({name: default for name, _, default in self.keys.values()})
        for text in given:
            key, mark, part = text.partition("=")
            if not mark or key not in self.keys:
                known = ", ".join(f"{one}=..." for one in self.keys)
                raise click.BadParameter(f"{text!r} is none of {known}", ctx, self)
            name, kind, _ = self.keys[key]
            ctx.params[name] = click.types.convert_type(kind)(part, self, ctx)
            ctx.set_parameter_source(name, ParameterSource.COMMANDLINE)
        return given


class Grouped(click.Command):
    """A command whose help has groups: ``--help`` shows common options, ``--help-all`` all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that has another name now is refused with this name."""
        ctx.meta[ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in RENAMED:
                raise
            what = f"{error.option_name} is no option now; use {RENAMED[error.option_name]}"
            raise click.UsageError(what, ctx) from None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` if there are options that are not common."""
        found = super().get_params(ctx)
        n_more = sum(not getattr(one, "common", True) for one in found)
        if n_more == 0:
            return found

        def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
            if wanted and not ctx.resilient_parsing:
                ctx.meta["shows all options"] = True
                click.echo(ctx.get_help())
                ctx.exit()

        text = f"Show {n_more} more options and exit."
        more = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
            help=text, show_default=False,
        )  # fmt: skip
        return [*found, more]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, one group after the other."""
        shows_all = ctx.meta.get("shows all options", False)
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for one in self.get_params(ctx):
            record = None if isinstance(one, click.Argument) else one.get_help_record(ctx)
            is_asked_for = one.name != "help_all" if shows_all else getattr(one, "common", True)
            if record is not None and is_asked_for:
                groups[getattr(one, "group", "Options")].append(record)
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


class Commands(click.Group):
    """A group of such commands."""

    command_class = Grouped


Command = Callable[..., Any]


def option(*names: str, **more: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds an option; `more` may have `group` and `common`."""
    return click.option(*names, cls=more.pop("cls", Option), **more)


method_option = partial(option, group="Method", common=True)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, in this order."""

    def add(command: Command) -> Command:
        for one in reversed(options):
            command = one(command)
        return command

    return add


def takes_edges(
    *options: Callable[[Command], Command], required: bool = True
) -> Callable[[Command], Command]:
    """Return a decorator that adds the argument EDGES, how to read it, and other options."""
    edges = click.argument("edges", nargs=-1, required=required)

    def add(command: Command) -> Command:
        return with_options(edges, *options, *READING, *QUIET)(shows_progress(command))

    return add


def was_given(name: str) -> bool:
    """Whether an option, or a key of one, is on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


# Types of values.


class Fraction(click.FloatRange):
    """A range of numbers, without NaN."""

    def convert(self, value: Any, *place: Any) -> Any:
        """Refuse NaN as well, which is in no order with other numbers."""
        number = super().convert(value, *place)
        if number != number:
            self.fail(f"{value} is not a number.", *place)
        return number


fraction = Fraction(0.0, 1.0, min_open=True, max_open=True)


def as_explained(text: str) -> tuple[str, int]:
    """Return which nodes to explain, and how many, of a text such as top:20 or borderline:20."""
    which, _, count = text.partition(":")
    if which not in ("top", "borderline") or not count.isdecimal() or int(count) == 0:
        raise click.BadParameter(f"{text!r} is neither top:N nor borderline:N, such as top:20.")
    return which, int(count)


def as_column(text: str) -> str | int:
    """Return the name of a column, or its position if the text is a number."""
    return int(text) if text.isdecimal() else text


def as_moment(text: str) -> str | float:
    """Return a time or a duration as a number, or as text, such as 2026-03-31 or 30d."""
    try:
        return float(text)
    except ValueError:
        return text


def _as_weight(text: str) -> str | int | bool:
    return False if text == "none" else as_column(text)


def _as_bipartite(text: str) -> bool | tuple[str, ...]:
    if text in ("columns", "no"):
        return text == "columns"
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2:
        raise click.BadParameter("it needs two names, such as user,item, or columns, or no")
    return names


# Of the libraries that numpy and scipy may be built with.
LIMITS = (
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)  # fmt: skip


def _choose_threads(context: click.Context, _: click.Parameter, threads: int) -> int:
    """Return the number of threads, and let BLAS start no more, which reads this when loaded."""
    if threads == -1:
        is_limited = context.params.get("memory") and not was_given("threads")
        affinity = getattr(os, "sched_getaffinity", None)  # which macOS and Windows do not have
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        threads = 1 if is_limited else cores  # threads that read have their own blocks
    if threads > 0 and "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(LIMITS, str(threads)))
    # The pool that pyarrow prefers keeps much free memory for each thread, 50 MB and more.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from ohmlearn.checks.parameters import check_n_jobs

    return check_n_jobs(threads)  # before anything is read


# The options. Those of READING set the fields of ReadOptions.


_column = partial(option, type=as_column, metavar="COLUMN", group="Input", common=True)


READ_EDGES = {
    "format": ("format", str, None),
    "id_type": ("id_type", str, None),
    "header": ("header", click.BOOL, None),
    "delimiter": ("delimiter", str, None),
    "comment": ("comment", str, None),
    "latest": ("latest", as_moment, None),
}
READING = (
    _column(
        "--from", "source_col", help="Column of one end of an edge: a name, or a position from 0."
    ),
    _column("--to", "target_col", help="Column of the other end."),
    _column(
        "--weight", "weight_col", type=_as_weight,
        help="Column of the weights, or a function of it: amount:log is log(1 + amount), "
        "amount:sqrt its square root, and amount:cap=0.99 at most its 0.99 quantile among the "
        "first 100,000 edges. With none, all weights are 1.",
    ),
    _column("--time", help="Column of the times: numbers, or dates such as 2026-03-31."),
    option(
        "--where", group="Input", metavar="CONDITION",
        help="Read only rows that satisfy a condition, such as \"amount > 10 and type = 'buy'\".",
    ),
    option(
        "--event-id", "event_id_col", type=as_column, metavar="COLUMN", group="Input",
        help="Column of event ids. Rows whose event was read before are left out and counted. The "
        "last 8,388,608 ids are remembered, also by --state.",
    ),
    option(
        "--bipartite", type=_as_bipartite, metavar="NAME,NAME|columns|no", group="Input",
        help="The two ends are two types of nodes, such as user,item, whose ids may overlap. Ids "
        "then start with the type, as in user:17. With columns, the types are called like the "
        "columns. With no, the two ends have the same type.",
    ),
    option(
        "--on-bad", type=click.Choice(["raise", "skip"]), default="raise", group="Input",
        help="Stop at a bad row, or leave bad rows out and count them.",
    ),
    option(
        "--read", cls=KeyValues, keys=READ_EDGES, group="Input",
        help="How EDGES are read; may be repeated. format= is csv, tsv, text, jsonl, parquet, "
        "arrow, matrix_market, metis, graph or numpy; by default it is found from the name and the "
        "first bytes. id_type= is int64 or string. header=yes or no, delimiter= and comment= are "
        "for text. latest= is a number or date; rows with a later time are bad. By default it is "
        "tomorrow for dates and Unix times.",
    ),
)  # fmt: skip
QUIET = (
    option(
        "--json", "as_json", is_flag=True, group="Output",
        help="Write progress and summary as JSON lines.",
    ),
    option(
        "-q", "--quiet", is_flag=True, group="Output",
        help="Print no progress, summary or warnings.",
    ),
)  # fmt: skip
OUTPUT = option(
    "-o", "--output", default="-", metavar="FILE", group="Output", common=True,
    help="Where to write the table: Parquet, CSV, TSV, JSON lines or Arrow by the ending, also at "
    "an address such as s3://bucket/labels.csv. With -, CSV is printed.",
)  # fmt: skip
SAFE = {"csv_safe": ("csv_safe", click.BOOL, False)}
SAFE_HELP = (
    "csv_safe=yes writes ' before names that a spreadsheet would take for a formula, such as =1+1."
)
CSV_SAFE = option(
    "--option", "rare", cls=KeyValues, keys=SAFE, group="Output", help=f"A rare option: {SAFE_HELP}"
)


def epsilon_option(default: float, *, common: bool = False) -> Callable[[Command], Command]:
    """Return the option ``--epsilon``, whose default depends on what the result is."""
    text = "Accuracy of the sparsifier: a smaller number keeps more edges."
    return method_option("--epsilon", type=fraction, default=default, common=common, help=text)


MAX_EDGES = option(
    "--max-edges", type=click.IntRange(min=1), group="Method",
    help="Number of edges to keep, instead of --epsilon.",
)  # fmt: skip
MEMORY = (
    option(
        "--memory", metavar="SIZE", group="Machine",
        help="Memory limit of the whole command, such as 2GB. It replaces --epsilon, needs "
        "--n-nodes, and makes 1 the default of --threads.",
    ),
    option(
        "--n-nodes", type=click.IntRange(min=1), group="Machine",
        help="Number of nodes, or more, for --memory.",
    ),
)  # fmt: skip
SEED = option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=0, group="Machine", help="Random seed."
)
THREADS = option(
    "--threads", type=int, default=-1, callback=_choose_threads, group="Machine",
    metavar="N", show_default=False,
    help="Number of threads. Results do not depend on it. Default: all cores.",
)  # fmt: skip
CLUSTER = option(
    "--cluster", metavar="ADDRESS|local[:N]", group="Machine",
    help="Work on a Dask cluster: the address of its scheduler, or N processes on this machine. "
    "Labels depend on how files are cut into partitions, not on the number of workers.",
)  # fmt: skip
FORGETTING = (
    option(
        "--half-life", type=as_moment, metavar="DURATION", group="Time",
        help="Edges count half as much after this time, such as 7d, 12h or 30min; or a number in "
        "the unit of the times.",
    ),
    option(
        "--horizon", type=as_moment, metavar="DURATION", group="Time",
        help="Count only edges of this time before the latest one, such as 30d.",
    ),
    option(
        "--since", type=as_moment, metavar="TIME", group="Time",
        help="Count only edges since this date, or number.",
    ),
)  # fmt: skip
READ_LABELS = option(
    "--read-labels", cls=KeyValues, group="Input", needs="--labels",
    keys={
        "node": ("node_col", as_column, None),
        "label": ("label_col", as_column, None),
        "weight": ("label_weight_col", as_column, None),
    },
    help="Columns of --labels, by name or position: node=, label=, and weight= for how much each "
    "label counts. By default they have usual names, such as weight, confidence or trust.",
)  # fmt: skip
FEATURES = (
    option(
        "--features", "features_file", metavar="FILE", group="Input", common=True,
        help="Table with columns about the nodes, such as ages and cities, one row for each node. "
        "Labels are then predicted from these columns and the edges together. Texts become "
        "categories, and values may be missing.",
    ),
    option(
        "--read-features", cls=KeyValues, group="Input", needs="--features",
        keys={
            "node": ("feature_node_col", as_column, None),
            "columns": ("feature_cols", lambda names: [*map(str.strip, names.split(","))], None),
        },
        help="Columns of --features: node= is that of the ids, by default one called node, "
        "node_id or id, or as in --labels; columns=NAME,... are those to use, by default all.",
    ),
)  # fmt: skip
