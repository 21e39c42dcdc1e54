"""``label --state``: what the options of a run mean for the model in a file."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ohmlearn.cli.main import was_given
from ohmlearn.cli.messages import tell
from ohmlearn.cli.model_options import as_list, make_parameters, model_choices
from ohmlearn.edges import Batch, Edges
from ohmlearn.estimators.kept_graph import KeptGraph
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.problem import HFSParameters
from ohmlearn.estimators.state_file import StateFile
from ohmlearn.nodes import NodeTable
from ohmlearn.reading.label_table import FileLabels, as_node_ids, gather
from ohmlearn.sparsifier import StreamingSparsifier

__all__ = ["NoEdges", "change_options", "check_options", "join_labels", "load_state"]

REMEDY = "leave out the option, or name another state to start over"


class NoEdges(Edges):
    """Stands in for the stream of a run that only changes labels or asks again."""

    rereadable = False

    def __init__(self, nodes: NodeTable | None) -> None:
        self.nodes = nodes

    def batches(self, n_jobs: int = 1) -> Iterator[Batch]:
        """Yield nothing."""
        return iter(())


def load_state(
    state: StateFile, options: dict[str, Any], start: Callable[[], Labelling] | None = None
) -> Labelling:
    """Return the model in a file, with the threads of this command, or a new one."""

    def continue_with(kept: StreamingSparsifier) -> Labelling:
        budget = {"epsilon": kept.options.epsilon, "max_edges": kept.options.max_edges}
        times = {name: getattr(kept.options, name) for name in ("half_life", "horizon")}
        p = make_parameters({**options, **budget, "seed": kept.seed}, False, **times)
        return Labelling(p, KeptGraph.start(p, sparsifier=kept))

    found, threads = state.load(continue_with, start), options["threads"]
    found.kept.use_threads(threads)
    _number_nodes(found)
    p = replace(found.parameters, n_jobs=threads)
    problem, answer = found.problem, found.answer
    if problem is not None:
        problem = replace(problem, parameters=p, nodes=found.kept.nodes)
    if answer is not None:
        answer = problem.answer(answer.result, answer.n_iter)
    return found._replace(parameters=p, problem=problem, answer=answer)


def check_options(path: str, kept: StreamingSparsifier, asked: StreamingSparsifier) -> None:
    """Refuse options for the sparsifier of a state that differ from its own."""
    asked_now = _describe(asked)
    for name, (before, shown) in _describe(kept).items():
        now, given = asked_now[name]
        if was_given(name) and before != now:
            option = f"--{name.replace('_', '-')}"
            how = f"without {option}" if shown is None else f"with {option} {shown}"
            raise ValueError(f"{path} was started {how}, but this command has {given}; {REMEDY}")
    if was_given("since") and kept.options.reach is None:
        raise ValueError(
            f"{path} was started without --last and --since, so it has no times; {REMEDY}"
        )


def change_options(
    path: str, found: Labelling, options: dict[str, Any], labels: FileLabels | None
) -> HFSParameters:
    """Return the parameters with the options that were given."""
    classes = () if found.problem is None else found.problem.classes.tolist()
    known = {str(one): one for one in classes} if found.problem is not None else labels or {}
    changed: dict[str, Any] = {}
    for name, value in model_choices(options, known).items():
        before = getattr(found.parameters, name)
        if was_given(name) and before != value:
            changed[name] = value
            if not (options["quiet"] or options["as_json"]):
                option = f"--{name.replace('_', '-')}"
                tell(f"{path}: {option} was {before!r}, and is {value!r} from now on")
    if options["passes"] is not None:
        changed["passes"] = options["passes"]
    return replace(found.parameters, **changed)


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


def _number_nodes(found: Labelling) -> None:
    """Give a graph whose nodes are numbers a table of ids: the numbers."""
    kept = found.kept.store
    if kept.nodes is None and found.kept.graph.n_nodes > 0:
        n_nodes = found.kept.graph.n_nodes if found.problem is None else found.problem.n_nodes
        kept.nodes = NodeTable()
        kept.nodes.add(np.arange(n_nodes))


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
