"""Options about features of nodes, and what is said about a file of features."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import as_column, check_ids, open_edges, watch_edges
from ohmlearn.cli.forgetting_options import Forgetting
from ohmlearn.cli.main import was_given
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model_options import read_shares
from ohmlearn.errors import Param

if TYPE_CHECKING:
    from ohmlearn.edges import Edges
    from ohmlearn.features import GraphFeatureClassifier, NodeFeatures
    from ohmlearn.reading import EdgeStream
    from ohmlearn.reading.label_table import FileLabels
    from ohmlearn.sparsifier import StreamingSparsifier

__all__ = [
    "check_feature_ids",
    "check_feature_options",
    "describe_features",
    "feature_options",
    "fit_features",
    "label_with_features",
    "read_feature_file",
]

MODELS = ("logistic", "hist-gradient-boosting")
MOST_NAMES, MOST_LINES = 5, 20  # what is printed about columns
MOST_CHECKED = 10_000  # ids that are compared with those of the edges before these are read
MOST_CELLS = 1 << 29  # of a matrix that is made dense
MANY_LABELS = 5_000
LEAST_LEAF = 5  # labels in a leaf of a tree
MOST_GAMMA = 1e9
# Options that do not go together with --features, and why.
REFUSED = {
    "cluster": "features are joined in one process",
    "memory": "the memory for features is not known; give --max-edges",
}
OF_EDGES_ALONE = ("method", "normalization")  # options of the other model
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
        "node, node_id or id, or as in --labels.",
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
    """Refuse options about features if there are none, and options that do not go with them.

    Examples
    --------
    >>> options = {"features_file": None, "feature_node_col": None, "feature_cols": "age"}
    >>> check_feature_options({**options, "model": None})
    Traceback (most recent call last):
    ...
    click.exceptions.UsageError: --feature-cols needs --features
    """
    if options["features_file"] is None:
        for name in ("feature_node_col", "feature_cols", "model"):
            if options[name] is not None:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --features")
        return
    if options["features_file"] == "-":
        raise click.UsageError("--features cannot be read from a pipe; give a file")
    for name, why in REFUSED.items():
        if options[name] is not None:
            raise click.UsageError(f"--{name} cannot be used with --features: {why}")
    for name in OF_EDGES_ALONE:
        if was_given(name):
            option = name.replace("_", "-")
            raise click.UsageError(
                f"--{option} is about labels from the edges alone; leave it out with --features"
            )
    gamma = options["gamma"]
    if gamma is not None and not 0 <= gamma <= MOST_GAMMA:
        raise click.UsageError(f"--gamma must be from 0 to {MOST_GAMMA:g} with --features")
    if options["class_prior"] == ("labels",):
        raise click.UsageError(
            "--class-prior labels means nothing with --features: labels count as a random sample "
            "by default; leave it out"
        )
    if options["passes"] is not None and options["passes"] > 1:
        raise click.UsageError("--features reads the edges once; leave out --passes")


def read_feature_file(options: dict[str, Any], labels: "FileLabels") -> "NodeFeatures":
    """Return the features of a file, and print what became of its columns.

    The column of ids may be called as that of the labels. A column with the name of the labels is
    left out.
    """
    from ohmlearn._phases import phase
    from ohmlearn.features.node_features import drop_label_column, read_features_as
    from ohmlearn.reading import SourceError

    path, columns = options["features_file"], options["feature_cols"]
    if columns is not None:
        columns = [name.strip() for name in columns.split(",")]
    node_col = as_column(options["feature_node_col"])
    try:
        with phase(f"reading {path}"):
            features: NodeFeatures = read_features_as(path, node_col, columns, labels.id_heading)
    except SourceError as error:  # the option node_col is about labels
        said = error.message.replace(f"{Param('node_col')}", f"{Param('feature_node_col')}")
        raise SourceError(said, remedy=error.remedy, place=error.place) from error
    features = drop_label_column(features, labels.label_heading)
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
    nodes, columns = "node" if n_rows == 1 else "nodes", "feature" if n_columns == 1 else "features"
    what = f"{n_rows:,} {nodes} with {n_columns:,} {columns}"
    yield f"{features.source}: {what}, ids = {features.id_heading!r}"
    alike: dict[str, list[str]] = {}
    for name, treatment in features.treatment.items():
        alike.setdefault(treatment, []).append(name)
    for at, (treatment, names) in enumerate(alike.items()):
        if at == MOST_LINES:
            rest = sum(map(len, list(alike.values())[at:]))
            yield f"  and {rest:,} more {'column' if rest == 1 else 'columns'}"
            return
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        yield f"  {', '.join(names[:MOST_NAMES])}{more}: {treatment}"


def label_with_features(
    options: dict[str, Any], labels: "FileLabels", forgetting: Forgetting
) -> tuple["GraphFeatureClassifier", "EdgeStream", Any]:
    """Return the fitted model, the stream of edges, and the edges that count in it."""
    from ohmlearn.checks.times import check_moment
    from ohmlearn.edges.wrapped import TimeFiltered
    from ohmlearn.graph.time_view import TimeView
    from ohmlearn.sparsifier import StreamingSparsifier

    features = read_feature_file(options, labels)
    stream = open_edges(options, needs_times=forgetting.needs_times)
    check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
    check_feature_ids(stream, features)
    since = forgetting.moment.get("since")
    sparsifier = StreamingSparsifier(
        epsilon=options["epsilon"],
        max_edges=options["max_edges"],
        random_state=options["seed"],
        n_jobs=options["threads"],
        **(forgetting.parameters if since is None else {}),
    )
    edges = watch_edges(stream, options, sparsifier, needs_edges=True)
    if since is not None:
        edges = TimeFiltered(edges, TimeView(since=check_moment("since", since)), needs_edges=True)
    return fit_features(options, features, edges, labels, sparsifier), stream, edges


def check_feature_ids(stream: "Edges", features: "NodeFeatures") -> None:
    """Refuse features whose ids cannot be those of the edges, before these are read."""
    some = features.chosen_ids[:MOST_CHECKED].tolist()
    check_ids(stream, features.source, some, heading=features.id_heading)


def fit_features(
    options: dict[str, Any],
    features: "NodeFeatures",
    edges: object,
    labels: "FileLabels",
    sparsifier: "StreamingSparsifier | None" = None,
) -> "GraphFeatureClassifier":
    """Return the model that the options describe, fitted to edges or to a KnownGraph."""
    from threadpoolctl import threadpool_limits

    from ohmlearn.checks.parameters import check_n_jobs
    from ohmlearn.features import GraphFeatureClassifier

    if options["model"] == "hist-gradient-boosting":
        features = _as_dense(features)
    model = GraphFeatureClassifier(
        _make_estimator(options),
        **({} if options["gamma"] is None else {"gamma": options["gamma"]}),
        class_prior=read_shares(options["class_prior"], labels),
        calibration=None if options["calibration"] == "none" else "cv",
        random_state=options["seed"],
        n_jobs=options["threads"],
    )
    # Trees of few labels take longer with several threads.
    threads = 1 if len(labels) < MANY_LABELS else check_n_jobs(options["threads"])
    with threadpool_limits(threads, "openmp"):
        return model.fit_edges(
            edges, features, labels, sample_weight=labels.weights, sparsifier=sparsifier
        )


def _as_dense(features: "NodeFeatures") -> "NodeFeatures":
    """Return features as a dense matrix, because trees do not take sparse ones."""
    from copy import copy

    from scipy import sparse

    if not sparse.issparse(features.X):
        return features
    n_rows, n_columns = features.X.shape
    if n_rows * n_columns > MOST_CELLS:
        raise ValueError(
            f"{n_columns:,} columns for {n_rows:,} nodes are too many for --model "
            f"hist-gradient-boosting; use --model logistic, or fewer columns (--feature-cols)"
        )
    dense = copy(features)
    dense.X = features.X.toarray()
    return dense


def _make_estimator(options: dict[str, Any]) -> Any:
    """Return the estimator that --model names; None is logistic regression."""
    if options["model"] != "hist-gradient-boosting":
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        min_samples_leaf=LEAST_LEAF, early_stopping=False, random_state=options["seed"] % 2**32
    )
