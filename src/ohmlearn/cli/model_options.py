"""Options of the commands that label nodes, and the model that they describe."""

import math
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ohmlearn.cli.edge_options import as_column, fraction
from ohmlearn.cli.messages import tell

if TYPE_CHECKING:
    from ohmlearn.estimators.label_job import Labelling
    from ohmlearn.estimators.problem import HFSParameters
    from ohmlearn.reading.label_table import FileLabels

__all__ = [
    "as_list",
    "check_label_columns",
    "has_many_classes",
    "label_columns_options",
    "make_parameters",
    "model_choices",
    "model_options",
    "read_label_file",
    "read_shares",
    "sparsifier_options",
    "warn_apart",
]

MANY = 20  # classes
SHARE = re.compile(r"\s*(.+?)=([^=,]*)(?:,|$)")  # a name may have commas and equals signs
LABEL_COLUMNS = ("node_col", "label_col", "label_weight_col")


def read_shares(given: tuple[str, ...], labels: dict[str, Any]) -> Any:
    """Return the class prior of `HFSClassifier`; its keys are classes of the labels.

    Examples
    --------
    >>> read_shares(("1=0.7,2=0.3",), {"ann": 1, "bob": [1, 2]})
    {1: 0.7, 2: 0.3}
    >>> read_shares(("Smith, J.=3", "a=b=1"), {"ann": "Smith, J."})
    {'Smith, J.': 3.0, 'a=b': 1.0}
    """
    if not given or given == ("labels",):
        return given[0] if given else None
    classes = {}
    for label in labels.values():
        for one in label if isinstance(label, list | dict) else [label]:
            classes[str(one)] = one  # labels may be integers
    shares: dict[Any, float] = {}
    for text in given:
        end = 0
        while end < len(text):
            found = SHARE.match(text, end)
            if found is None:
                raise click.UsageError(
                    f"--class-prior needs NAME=SHARE, such as ham=0.7,spam=0.3, or labels alone, "
                    f"got {text!r}"
                )
            name, end = classes.get(found[1], found[1]), found.end()
            if name in shares:
                raise click.UsageError(f"--class-prior has two shares of {name!r}")
            shares[name] = _read_share(found[2], str(name))
    return shares


def _read_share(text: str, name: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0.0 < share < math.inf:
        raise click.UsageError(
            f"--class-prior: the share of {name!r} must be a positive number, got {text!r}"
        )
    return share


def check_shares(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is not a share, before anything is read."""
    read_shares(given, {})
    return given


LABEL_COLUMNS_OPTIONS = (
    click.option("--node-col", help="Name or position of the column of nodes in --labels."),
    click.option("--label-col", help="Name or position of the column of labels in --labels."),
    click.option(
        "--label-weight-col",
        help="Name or position of the column in --labels that says how much each label counts. "
        "Default: a column called weight, confidence or trust, if there is one.",
    ),
)
SPARSIFIER_OPTIONS = (
    click.option("--epsilon", type=fraction, default=0.8, help="Accuracy of the sparsifier."),
    click.option(
        "--max-edges", type=click.IntRange(min=1), help="Edges to keep, instead of epsilon."
    ),
)
MODEL_OPTIONS = (
    click.option(
        "--method",
        type=click.Choice(["harmonic", "restart", "auto"]),
        default="harmonic",
        help="Harmonic functions, random walks with restart, or the one that predicts left-out "
        "labels better. Restart may suit graphs with hubs, such as social networks.",
    ),
    click.option(
        "--class-prior",
        multiple=True,
        callback=check_shares,
        metavar="NAME=SHARE,...|labels",
        help="Known shares of the classes among all nodes, such as ham=0.7,spam=0.3, which the "
        "answers then have; may be repeated. With labels, their shares among the labels, for "
        "labels that are many and drawn at random.",
    ),
    click.option(
        "--normalization", type=click.Choice(["stable", "cmn", "none"]), default="stable",
        help="How the scores of the classes are made comparable.",
    ),
    click.option(
        "--calibration",
        type=click.Choice(["loo", "none"]),
        default="loo",
        help="Fit probabilities to labels that are left out, or not at all.",
    ),
    click.option(
        "--gamma",
        type=float,
        help="Weight of the smoothness term; with --features, how far these are smoothed along the "
        "edges. Default: chosen from the labels and the mean degree.",
    ),
)  # fmt: skip

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _all_of(options: Iterable[Decorator]) -> Decorator:
    """Return a decorator that adds options, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(list(options)):
            command = option(command)
        return command

    return add


label_columns_options = _all_of(LABEL_COLUMNS_OPTIONS)
sparsifier_options = _all_of(SPARSIFIER_OPTIONS)
model_options = _all_of(MODEL_OPTIONS)


def read_label_file(path: str, options: dict[str, Any]) -> "FileLabels":
    """Return the labels of a file, and print which columns they are from if there are weights."""
    from ohmlearn.reading.label_table import read_labels

    labels = read_labels(path, *(as_column(options[name]) for name in LABEL_COLUMNS))
    if labels.n_minus_ones > 0:
        n, one = labels.n_minus_ones, labels.n_minus_ones == 1
        rows, count = ("row", "counts") if one else ("rows", "count")
        warnings.warn(
            f"{labels.path}: {n:,} {rows} with the label -1 {count} as unlabelled",
            UserWarning,
            stacklevel=2,
        )
    usual = labels.id_heading is None or labels.has_usual_headings
    if (labels.weights is not None or not usual) and not (options["quiet"] or options["as_json"]):
        tell(f"{labels.path}: {labels.columns}")
    return labels


def check_label_columns(options: dict[str, Any]) -> None:
    """Refuse columns of a file that was not given."""
    for name in LABEL_COLUMNS:
        if options[name] is not None and options["labels_file"] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --labels")


def has_many_classes(labels: "FileLabels") -> bool:
    """Whether there are so many classes that they may be the other ends of edges.

    Examples
    --------
    >>> from ohmlearn.reading.label_table import FileLabels
    >>> labels = FileLabels("labels.csv")
    >>> labels.update({str(i): i % 3 for i in range(100)})
    >>> has_many_classes(labels)
    False
    >>> labels.update({str(i): [i + 1, i + 2] for i in range(100)})
    >>> has_many_classes(labels)
    True
    """
    n_classes = len(labels.classes())
    return n_classes > MANY and n_classes > len(labels) / 2


def as_list(label: Any) -> list[Any]:
    """Return all labels of a node."""
    return label if isinstance(label, list) else [label]


def make_parameters(
    options: dict[str, Any],
    rereadable: bool,
    labels: "FileLabels | None" = None,
    **parameters: Any,
) -> "HFSParameters":
    """Return the parameters that the options describe; those of `model_options` may be absent.

    More `parameters` are passed on.
    """
    from ohmlearn.estimators.problem import HFSParameters

    passes = options["passes"] or (3 if rereadable else 1)
    if passes > 1 and not rereadable:
        raise click.UsageError("a pipe can be read only once: use --passes 1, or a file")
    chosen = model_choices(options, labels or {}) if "method" in options else {}
    given = {
        "epsilon": options["epsilon"],
        "max_edges": options["max_edges"],
        "passes": passes,
        "random_state": options["seed"],
        "n_jobs": options["threads"],
    }
    return HFSParameters.check("HFSClassifier", given | chosen | parameters)


def warn_apart(found: "Labelling") -> None:
    """Warn of nodes without a label in the words of the command line."""
    found.answer.warn_apart("their label is left empty, and reached is false there", "")


def model_choices(options: dict[str, Any], labels: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the classifier that `model_options` describe.

    With --features, these options are about the model of features, which a state does not keep.
    """
    if options.get("features_file") is not None:
        return {}
    return {
        "method": options["method"],
        "class_prior": read_shares(options["class_prior"], labels),
        "normalization": _none(options["normalization"]),
        "calibration": _none(options["calibration"]),
        "gamma": "auto" if options["gamma"] is None else options["gamma"],
    }


def _none(choice: str) -> str | None:
    return None if choice == "none" else choice
