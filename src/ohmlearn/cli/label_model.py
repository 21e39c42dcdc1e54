"""The labels and features that the options of a command name, and the model that they describe."""

import math
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.messages import note
from ohmlearn.cli.open_edges import Forgetting, check_ids, open_here_or_on_cluster, watch_edges
from ohmlearn.cli.options import Options, option, was_given
from ohmlearn.errors import Param

if TYPE_CHECKING:
    from ohmlearn.edges import Edges
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.problem import HFSParameters
    from ohmlearn.features import GraphFeatureClassifier, NodeFeatures
    from ohmlearn.reading.label_table import FileLabels
    from ohmlearn.sparsifier import StreamingSparsifier

PROPORTION = re.compile(r"\s*(.+?)=([^=,]*)(?:,|$)")  # a name may have commas and equals signs
TREES = "hist-gradient-boosting"
METHODS = ("auto", "harmonic", "restart")  # from the edges alone
FEATURE_METHODS = ("logistic", TREES)  # with --features
MOST_NAMES, MOST_LINES = 5, 20  # what is printed about columns
MOST_CHECKED = 10_000  # ids that are compared with those of the edges before these are read
MOST_GAMMA = 1e9


# Labels.


def read_label_file(options: Options) -> "FileLabels | None":
    """Return the labels of --labels, and print which columns they are from if these are unusual."""
    from ohmlearn._warnings import warn
    from ohmlearn.reading.label_table import read_labels

    if options["labels_file"] is None:
        return None
    names = ("labels_file", "node_col", "label_col", "label_weight_col")
    labels = read_labels(*(options[name] for name in names))
    if labels.n_minus_ones > 0:
        n, one = labels.n_minus_ones, labels.n_minus_ones == 1
        rows, count = ("row", "counts") if one else ("rows", "count")
        warn(f"{labels.path}: {n:,} {rows} with the label -1 {count} as unlabelled")
    usual = labels.id_heading is None or labels.has_usual_headings
    if labels.weights is not None or not usual:
        note(f"{labels.path}: {labels.columns}")
    return labels


def as_list(label: object) -> list[Any]:
    """Return all labels of a node."""
    return label if isinstance(label, list) else [label]


def warn_doubts(found: "Labelling") -> None:
    """Warn of nodes without a label, and of too few labels, in the words of the command line."""
    answer = found.class_answer
    answer.warn_apart("their label is left empty, and reached is false there", "")
    answer.warn_few()


# The model.


def check_prior(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is not a proportion, before anything is read."""
    read_prior(given, {})
    return given


def read_prior(given: tuple[str, ...], labels: dict[str, Any]) -> Any:
    """Return the class prior of `HFSClassifier`; its keys are classes of the labels."""
    if not given or given == ("labels",):
        return given[0] if given else None
    every = (one for label in labels.values() for one in as_list(label))
    classes = {str(one): one for one in every}  # labels may be integers
    prior: dict[Any, float] = {}
    for text in given:
        end = 0
        while end < len(text):
            found = PROPORTION.match(text, end)
            if found is None:
                raise click.UsageError(
                    f"--class-prior needs NAME=PROPORTION, such as ham=0.7,spam=0.3, or labels "
                    f"alone, got {text!r}"
                )
            name, end = classes.get(found[1], found[1]), found.end()
            if name in prior:
                raise click.UsageError(f"--class-prior has two proportions of {name!r}")
            prior[name] = _read_proportion(found[2], str(name))
    return prior


CLASS_PRIOR = option(
    "--class-prior", multiple=True, callback=check_prior, metavar="NAME=PROPORTION,...|labels",
    group="Method",
    help="Known proportions of the classes among all nodes, such as ham=0.7,spam=0.3, which the "
    "answers then have; may be repeated. With labels, the answers are moved half of the way to the "
    "proportions among the labels, which helps if these are drawn at random.",
)  # fmt: skip


GAMMA = option(
    "--gamma", type=float, group="Method",
    help="Weight of smoothness against the labels; with --features, how far these are smoothed "
    "along the edges. Default: chosen from the labels and the mean degree.",
)  # fmt: skip
MODEL_KEYS = {
    "normalization": ("normalization", click.Choice(["stable", "cmn", "none"]), "stable"),
    "calibration": ("calibration", click.Choice(["loo", "none"]), "loo"),
    "prior_strength": ("prior_strength", click.Choice(["exact", "rough"]), "exact"),
}
MODEL_KEYS_HELP = (
    "A rare option; may be repeated. normalization= is how the scores of the classes are made "
    "comparable: stable (default), cmn or none. calibration=none does not fit the probabilities to "
    "left-out labels, as loo (default) does. prior_strength=rough moves the answers half of the "
    "way to --class-prior, if that is not known well."
)


def _read_proportion(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise click.UsageError(
            f"--class-prior: the proportion of {name!r} must be a positive number, got {text!r}"
        )
    return number


def make_parameters(
    options: Options,
    stream: "Edges | None",
    labels: "FileLabels | None",
    times: dict[str, Any],
    classes: Collection[Any] = (),
) -> "HFSParameters":
    """Return the parameters that the options describe; those of the model may be absent.

    There is no `stream` for a state, whose edges cannot be read again; `times` are parameters.
    With --memory there is room for the `classes`, by default those of the labels.
    """
    from ohmlearn.cli.memory_budget import within_memory
    from ohmlearn.estimators.problem import HFSParameters

    rereadable = stream is not None and stream.rereadable
    passes = options["passes"] or (3 if rereadable else 1)
    if passes > 1 and stream is not None and not rereadable:
        raise click.UsageError("a pipe can be read only once: use --passes 1, or a file")
    if not classes and labels is not None:
        classes = labels.classes()
    limited = within_memory(options, stream, passes, classes, labels or ())
    given = {"epsilon": options["epsilon"], "max_edges": limited["max_edges"], "passes": passes}
    given |= {"random_state": options["seed"], "n_jobs": options["threads"]}
    chosen = model_choices(options, labels or {})
    return HFSParameters.check("HFSClassifier", given | chosen | times)


@contextmanager
def open_to_label(
    options: Options,
    labels: "FileLabels | None",
    forgetting: Forgetting,
    named: "tuple[str, list[str], list[int]] | None" = None,
) -> Iterator[tuple["Edges", "Edges", "HFSParameters", "StreamingSparsifier | None"]]:
    """Open the edges that the options describe; compare their ids with those of files.

    Yields the stream, the edges to read, the parameters, and a new sparsifier: None if the edges
    have their own, as those of a cluster or of a log. `named` are more ids, as for `check_ids`.
    """
    from ohmlearn.estimators.kept_graph import KeptGraph

    with open_here_or_on_cluster(options, needs_times=forgetting.needs_times) as stream:
        p = make_parameters(options, stream, labels, forgetting.parameters)
        if options["cluster"]:
            yield stream, stream, p, None
            return
        if labels is not None:
            check_ids(stream, labels.path, list(labels), heading=labels.id_heading)
        if named is not None:
            check_ids(stream, *named)
        sparsifier = None if stream.is_log else KeptGraph.start(p).sparsifier
        yield stream, watch_edges(stream, options, sparsifier, needs_edges=True), p, sparsifier


def model_choices(options: Options, labels: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the classifier that the options describe, if the command has them.

    With --features, they are about the model of features, which a state does not keep.
    """
    if options.get("features_file") is not None:
        return {}
    prior = {"class_prior": read_prior(options["class_prior"], labels)}
    if "method" not in options:
        return prior
    names = ("normalization", "calibration")
    return prior | {
        "method": options["method"] or METHODS[0],
        "gamma": "auto" if options["gamma"] is None else options["gamma"],
        "prior_strength": options["prior_strength"],
        **{name: None if options[name] == "none" else options[name] for name in names},
    }


# Features.


def check_feature_options(options: Options) -> None:
    """Refuse options about features if there are none, and options that do not go with them."""
    method = options["method"]
    if options["features_file"] is None:
        if method in FEATURE_METHODS:
            raise click.UsageError(f"--method {method} needs --features")
        return
    gamma, passes = options["gamma"], options["passes"]
    no, alone = "cannot be used with --features", "is about labels from the edges alone"
    for is_wrong, why in (
        (options["features_file"] == "-", "--features cannot be read from a pipe; give a file"),
        (options.get("cluster"), f"--cluster {no}: features are joined in one process"),
        (
            options.get("memory"),
            f"--memory {no}: the memory for features is not known; give --max-edges",
        ),
        (method in METHODS, f"--method {method} {alone}; leave it out with --features"),
        (
            was_given("normalization"),
            f"--option normalization= {alone}; leave it out with --features",
        ),
        (
            gamma is not None and not 0 <= gamma <= MOST_GAMMA,
            f"--gamma must be from 0 to {MOST_GAMMA:g} with --features",
        ),
        (
            options["class_prior"] == ("labels",),
            "--class-prior labels means nothing with --features: labels count as a random sample "
            "by default; leave it out",
        ),
        (passes is not None and passes > 1, "--features reads the edges once; leave out --passes"),
    ):
        if is_wrong:
            raise click.UsageError(why)


def read_feature_file(options: Options, labels: "FileLabels") -> "NodeFeatures":
    """Return the features of a file, and print what became of its columns.

    The column of ids may be called as that of the labels. A column with the name of the labels is
    left out.
    """
    from ohmlearn._phases import phase
    from ohmlearn.features.node_features import drop_label_column, read_features_as
    from ohmlearn.reading import SourceError

    path, columns, node_col = (
        options[name] for name in ("features_file", "feature_cols", "feature_node_col")
    )
    try:
        with phase(f"reading {path}"):
            features: NodeFeatures = read_features_as(path, node_col, columns, labels.id_heading)
    except SourceError as error:  # the option node_col is about labels
        said = error.message.replace(f"{Param('node_col')}", f"{Param('feature_node_col')}")
        raise SourceError(said, remedy=error.remedy, place=error.place) from error
    features = drop_label_column(features, labels.label_heading)
    note(*_describe_features(features))
    return features


def _describe_features(features: "NodeFeatures") -> Iterator[str]:
    """Yield lines about the columns of a file; columns with the same treatment share a line."""
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


def check_feature_ids(stream: "Edges", features: "NodeFeatures") -> None:
    """Refuse features whose ids cannot be those of the edges, before these are read."""
    some = features.chosen_ids[:MOST_CHECKED].tolist()
    check_ids(stream, features.source, some, heading=features.id_heading)


def fit_with_features(
    options: Options,
    features: "NodeFeatures",
    edges: object,
    labels: "FileLabels",
    sparsifier: "StreamingSparsifier | None" = None,
) -> "GraphFeatureClassifier":
    """Return the model that the options describe, fitted to edges or to a KnownGraph."""
    from ohmlearn.features.feature_classifier import fit_features

    return fit_features(
        edges, features, labels, sample_weight=labels.weights, sparsifier=sparsifier,
        class_prior=read_prior(options["class_prior"], labels), random_state=options["seed"],
        n_jobs=options["threads"], **feature_choices(options),
    )  # fmt: skip


def feature_choices(options: Options) -> dict[str, Any]:
    """Return the parameters of the model of features and edges that the options describe."""
    return {
        "has_trees": options["method"] == TREES,
        "calibration": None if options["calibration"] == "none" else "cv",
        **({} if options["gamma"] is None else {"gamma": options["gamma"]}),
    }
