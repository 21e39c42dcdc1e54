"""Options about features of nodes, and what is said about a file of features."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edges import as_column
from ohmlearn.cli.messages import tell

if TYPE_CHECKING:
    from ohmlearn.features import NodeFeatures

__all__ = ["check_feature_options", "describe_features", "feature_options", "read_feature_file"]

MODELS = ("logistic", "hist-gradient-boosting")
MOST_NAMES, MOST_LINES = 5, 20  # what is printed about columns
FEATURE_OPTIONS = (
    click.option(
        "--features",
        "features_file",
        help="Table with columns about the nodes, such as ages and cities, one row for each node: "
        "CSV, Parquet, JSON lines or Arrow. Labels are then predicted from these columns and the "
        "edges together. Texts become categories, and missing values are allowed.",
    ),
    click.option(
        "--feature-node-col",
        help="Name or position of the column of nodes in --features. Default: a column called "
        "node, node_id or id.",
    ),
    click.option(
        "--feature-cols",
        metavar="NAME,...",
        help="Columns of --features to use. Default: all but the column of nodes.",
    ),
    click.option(
        "--model",
        type=click.Choice(MODELS),
        help="What predicts labels from --features: logistic regression, or gradient boosting, "
        "which needs more labels. Default: logistic.",
    ),
)


def feature_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about features."""
    for option in reversed(FEATURE_OPTIONS):
        command = option(command)
    return command


def check_feature_options(options: dict[str, Any]) -> None:
    """Refuse options about features if there are none.

    Examples
    --------
    >>> options = {"features_file": None, "feature_node_col": None, "feature_cols": "age"}
    >>> check_feature_options({**options, "model": None})
    Traceback (most recent call last):
    ...
    click.exceptions.UsageError: --feature-cols needs --features
    """
    for name in ("feature_node_col", "feature_cols", "model"):
        if options[name] is not None and options["features_file"] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --features")


def read_feature_file(options: dict[str, Any]) -> "NodeFeatures":
    """Return the features of a file, and print what became of its columns."""
    from ohmlearn._phases import phase
    from ohmlearn.features import read_features
    from ohmlearn.streams import SourceError

    path, columns = options["features_file"], options["feature_cols"]
    if columns is not None:
        columns = [name.strip() for name in columns.split(",")]
    try:
        with phase(f"reading {path}"):
            features = read_features(
                path, node_col=as_column(options["feature_node_col"]), columns=columns
            )
    except SourceError as error:  # the option node_col is about labels
        raise SourceError(str(error).replace("node_col", "--feature-node-col")) from error
    if not (options["quiet"] or options["as_json"]):
        tell(*describe_features(features))
    return features


def describe_features(features: "NodeFeatures") -> Iterator[str]:
    """Yield lines about the columns of a file; columns with the same treatment share a line.

    Examples
    --------
    >>> import pyarrow
    >>> from ohmlearn import NodeFeatures
    >>> columns = {"id": [7, 8], "age": [30, 50], "size": [1.5, 1.8], "city": ["Rome", "Rome"]}
    >>> print(*describe_features(NodeFeatures.from_table(pyarrow.table(columns))), sep="\\n")
    the Table: 2 nodes with 2 features, ids = 'id'
      age, size: numbers
      city: left out: all values are 'Rome'
    """
    n_rows, n_columns = features.X.shape
    what = f"{n_rows:,} nodes with {n_columns:,} {'feature' if n_columns == 1 else 'features'}"
    yield f"{features.source}: {what}, ids = {features.id_heading!r}"
    alike: dict[str, list[str]] = {}
    for name, treatment in features.treatment.items():
        alike.setdefault(treatment, []).append(name)
    for at, (treatment, names) in enumerate(alike.items()):
        if at == MOST_LINES:
            rest = sum(map(len, list(alike.values())[at:]))
            yield f"  and {rest:,} more columns"
            return
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        yield f"  {', '.join(names[:MOST_NAMES])}{more}: {treatment}"
