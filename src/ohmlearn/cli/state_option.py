"""``label --state``: a model in a file that takes in new edges, and knows its sources."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ohmlearn._arrays_file import HEAD, read_arrays
from ohmlearn.cli.main import was_given
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model_options import as_list, make_parameters, model_choices
from ohmlearn.cli.state_sources import EdgeDigest, describe_file
from ohmlearn.edges import Batch, Edges
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.model_file import is_model, load_labelling, save_labelling
from ohmlearn.estimators.problem import ClassProblem, HFSParameters
from ohmlearn.nodes import NodeTable
from ohmlearn.reading import EdgeStream
from ohmlearn.reading.label_table import FileLabels, as_node_ids, gather
from ohmlearn.sparsifier import StreamingSparsifier

if TYPE_CHECKING:
    pass

__all__ = ["NoEdges", "State", "StateIntake", "join_labels"]

NAME = "HFSClassifier"  # which can load the file, too
REMEDY = "leave out the option, or name another state to start over"


class NoEdges(Edges):
    """Stands in for the stream of a run that only changes labels or asks again."""

    rereadable = False

    def __init__(self, nodes: NodeTable | None) -> None:
        self.nodes = nodes

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield nothing."""
        return iter(())


class State:
    """The model in a file, and the file, which is replaced when the answers have been written.

    Attributes
    ----------
    path : str
    found : Labelling or None
        None if there is no file yet.
    """

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.path = path
        self.found: Labelling | None = None
        self._points: dict[str, Any] = {}  # of an estimator that was fitted to points
        self._before = _read_head(path)
        if self._before is not None:
            found, threads = self._load(options), options["threads"]
            found.kept.use_threads(threads)
            _number_nodes(found)
            p = replace(found.parameters, n_jobs=threads)
            problem, answer = found.problem, found.answer
            if problem is not None:
                problem = replace(problem, parameters=p, nodes=found.kept.nodes)
            if answer is not None:
                answer = problem.answer(answer.result, answer.n_iter)
            self.found = found._replace(parameters=p, problem=problem, answer=answer)

    def _load(self, options: dict[str, Any]) -> Labelling:
        """Return what the file holds, or a start with the sparsifier in it."""
        arrays = read_arrays(self.path)
        if is_model(arrays):
            found, _, self._points = load_labelling(self.path, NAME, ClassProblem, {}, arrays)
        else:
            kept = StreamingSparsifier.load(self.path)
            budget = {"epsilon": kept.options.epsilon, "max_edges": kept.options.max_edges}
            times = {name: getattr(kept.options, name) for name in ("half_life", "horizon")}
            p = make_parameters({**options, **budget, "seed": kept.seed}, False, **times)
            found = Labelling(p, KeptGraph.start(p, sparsifier=kept))
        if found.kept.sparsifier is None:
            raise ValueError(
                f"{self.path} holds a model that keeps all edges (epsilon=None), which only "
                f"Python can continue"
            )
        return found

    def check_options(self, asked: StreamingSparsifier) -> StreamingSparsifier:
        """Return the sparsifier, unless options for it were given that differ from its own."""
        kept = None if self.found is None else self.found.kept.sparsifier
        assert kept is not None
        asked_now = _describe(asked)
        for name, (before, shown) in _describe(kept).items():
            now, given = asked_now[name]
            if was_given(name) and before != now:
                option = f"--{name.replace('_', '-')}"
                how = f"without {option}" if shown is None else f"with {option} {shown}"
                raise ValueError(
                    f"{self.path} was started {how}, but this command has {given}; {REMEDY}"
                )
        if was_given("since") and kept.options.reach is None:
            raise ValueError(
                f"{self.path} was started without --last and --since, so it has no times; {REMEDY}"
            )
        if was_given("passes") and click.get_current_context().params["passes"] > 1:
            raise ValueError(
                f"more passes would need all edges that {self.path} has seen, but only those of "
                f"this command can be read; leave out --passes, or label all edges without --state"
            )
        return kept

    def change_options(self, options: dict[str, Any]) -> tuple[Labelling, bool]:
        """Return the labelling with the options that were given, and whether any of them is new."""
        found = self.found
        assert found is not None
        known = [] if found.problem is None else found.problem.classes.tolist()
        changed: dict[str, Any] = {}
        for name, value in model_choices(options, {str(one): one for one in known}).items():
            before = getattr(found.parameters, name)
            if was_given(name) and before != value:
                changed[name] = value
                if not (options["quiet"] or options["as_json"]):
                    option = f"--{name.replace('_', '-')}"
                    tell(f"{self.path}: {option} was {before!r}, and is {value!r} from now on")
        return found._replace(parameters=replace(found.parameters, **changed)), bool(changed)

    def save(self, found: Labelling, sources: list[dict[str, Any]]) -> None:
        """Replace the file, unless another run has done so meanwhile."""
        if _read_head(self.path) != self._before:
            raise ValueError(
                f"{self.path} was written by another run meanwhile, so it stays as it is; run this "
                f"command again"
            )
        found.kept.sources = [*found.kept.sources, *sources]
        parameters = {name: getattr(found.parameters, name) for name in HFSParameters.names()}
        save_labelling(self.path, NAME, found, parameters, self._points)


def _describe(sparsifier: StreamingSparsifier) -> dict[str, tuple[Any, Any]]:
    """Return the parameters of a sparsifier, by the names of options: to compare, and to show."""
    options = sparsifier.options
    plain = {"seed": sparsifier.seed, **asdict(options)}
    for name in ("n_nodes", "n_jobs", "verbose", "half_life", "horizon"):
        del plain[name]
    durations = {
        "half_life": (options.decay, options.half_life),
        "last": (options.reach, options.horizon),
    }
    return {name: (value, value) for name, value in plain.items()} | durations


def _read_head(path: str) -> bytes | None:
    """Return the first bytes of a file, which have its checksum; None if there is no file."""
    if not os.path.exists(path):
        return None
    with Path(path).open("rb") as file:
        return file.read(HEAD)


def _number_nodes(found: Labelling) -> None:
    """Give a graph whose nodes are numbers a table of ids: the numbers."""
    kept = found.kept.store
    if kept.nodes is None and found.kept.graph.n_nodes > 0:
        n_nodes = found.kept.graph.n_nodes if found.problem is None else found.problem.n_nodes
        kept.nodes = NodeTable()
        kept.nodes.add(np.arange(n_nodes))


class StateIntake:
    """The sources that a run takes in; refuses those that the state has already.

    Parameters
    ----------
    known : list of dict
        Sources that the state has.
    stream : EdgeStream
    path : str
        The state, for messages.
    again : bool
        Whether sources may be taken in again.

    Attributes
    ----------
    sources : list of dict
        What identifies each source, complete after the reading.
    """

    def __init__(
        self, known: list[dict[str, Any]], stream: EdgeStream | None, path: str, again: bool
    ) -> None:
        self.sources: list[dict[str, Any]] = []
        self._known, self._stream, self._path, self._again = list(known), stream, path, again
        for name in () if stream is None else stream.sources:
            found = describe_file(name)
            if found["size"]:
                self._refuse_known(found, ("size", "sample"))
                self._warn_of_name(found["name"])
            assert stream is not None
            self.sources.append(found | {"where": stream.options.where})
        for source in self.sources[:1]:
            self._warn_of_filter(source["where"])

    def unseen(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches, and take checksums of the edges of each source."""
        digests = [EdgeDigest() for _ in self.sources]
        for batch in batches:
            assert self._stream is not None
            digests[self._stream.source].add(batch)
            yield batch
        for source, digest in zip(self.sources, digests, strict=True):
            source |= {"n_edges": digest.n_edges, "digest": digest.hex()}
        earlier, self.sources = self.sources, []
        for source in earlier:
            if source["n_edges"] > 0:
                self._refuse_known(source, ("digest",))
            self.sources.append(source)

    def _warn_of_name(self, name: str) -> None:
        """Warn of a file that may have grown since it was taken in."""
        if not self._again and any(other.get("name") == name for other in self._known):
            warnings.warn(
                f"{self._path} has taken in another {name} before; if this one has the same edges "
                f"and more, they count twice: give only new edges",
                UserWarning,
                stacklevel=2,
            )

    def _warn_of_filter(self, where: str | None) -> None:
        """Warn if other rows of a table would count than in an earlier run."""
        before = next((other.get("where") for other in reversed(self._known)), where)
        if before != where:
            warnings.warn(
                f"{self._path} has taken in edges {_with(before)} before, but these are read "
                f"{_with(where)}; edges chosen in different ways count together",
                UserWarning,
                stacklevel=2,
            )

    def _refuse_known(self, source: dict[str, Any], names: tuple[str, ...]) -> None:
        """Refuse a source if the state, or this run, has one with the same content."""
        for other in [] if self._again else [*self._known, *self.sources]:
            if all(other.get(name) == source[name] for name in names):
                same = source["name"] == other.get("name")
                who = "it" if same else f"the same edges, as {other.get('name')},"
                raise ValueError(
                    f"{source['name']} was taken in before: {self._path} has {who} already; give "
                    f"only new edges, or add --again to count them once more"
                )


def _with(where: str | None) -> str:
    return "without --where" if where is None else f"with --where {where!r}"


def join_labels(found: Labelling, new: FileLabels | None) -> tuple[FileLabels, dict[str, int]]:
    """Return labels of a state with those of a file added, and how many are of which kind.

    Labels of the file replace those of the same nodes. If one of the two has names and the other
    integers, all labels become names, as they would in one file.
    """
    ids = found.kept.nodes
    assert ids is not None
    given = FileLabels("the state") if new is None else _with_ids_of(ids, new)
    joined = FileLabels(given.path)
    joined.columns, joined.weights = given.columns, {}
    known = None if found.problem is None else found.problem.labels
    names = [] if known is None else [str(name) for name in ids.ids(known.nodes)]
    nodes = {node: at for at, node in enumerate(names)}
    classes = [] if found.problem is None else found.problem.classes.tolist()
    every = [*classes, *(one for label in given.values() for one in as_list(label))]
    as_text = any(isinstance(one, str) for one in every)
    for node, at in nodes.items():
        if node not in given:
            assert known is not None
            shares = {
                str(name) if as_text else name: share
                for name, share in zip(classes, known.values[at].tolist(), strict=True)
                if share > 0
            }
            joined[node] = next(iter(shares)) if len(shares) == 1 else shares
            joined.weights[node] = float(known.weights[at])
    for node, label in given.items():
        labels = [str(one) if as_text else one for one in as_list(label)]
        joined[node] = labels if isinstance(label, list) else labels[0]
        joined.weights[node] = 1.0 if given.weights is None else given.weights[node]
        if isinstance(label, list) and given.weights is None:
            joined.weights[node] = [1.0] * len(label)
    n_replaced = sum(node in nodes for node in given)
    counts = {"kept": len(nodes) - n_replaced, "replaced": n_replaced}
    return joined, counts | {"new": len(given) - n_replaced}


def _with_ids_of(nodes: NodeTable, labels: FileLabels) -> FileLabels:
    """Return labels whose ids are written as those of the state."""
    own = as_node_ids(labels.path, list(labels), nodes.kind, nodes.kinds, heading=labels.id_heading)
    ids = [str(node) for node in own.tolist()]
    found = FileLabels(labels.path)
    found.update(_join_rows(ids, labels))
    found.columns, found.id_heading = (
        labels.columns, labels.id_heading,
    )  # fmt: skip
    if labels.weights is not None:
        found.weights = _join_rows(ids, labels.weights)
    return found


def _join_rows(ids: list[str], rows: dict[str, Any]) -> dict[str, Any]:
    """Return rows by other ids; 17 and 17.0 are one node, which has the values of both then."""
    pairs = zip(ids, rows.values(), strict=True)
    return gather((node, value) for node, values in pairs for value in as_list(values))
