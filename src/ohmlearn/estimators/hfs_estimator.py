"""What the estimators have in common: fitting to edges, more edges, other labels, more passes."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ohmlearn._phases import Phase, phase
from ohmlearn.checks.edge_arrays import is_table
from ohmlearn.edges import Edges
from ohmlearn.estimators.label_input import is_mapping
from ohmlearn.estimators.label_job import Labelling
from ohmlearn.estimators.labels_by_node import pair_by_node, warn_default_index
from ohmlearn.estimators.model_file import load_model, save_model
from ohmlearn.estimators.suggest_labels import Suggestion, suggest_nodes
from ohmlearn.harmonic.posterior import posterior_std
from ohmlearn.reading.as_edges import as_edges
from ohmlearn.sparsifier import StreamingSparsifier
from ohmlearn.sparsifier.sparsifier_times import check_moments

__all__ = ["BaseHFS"]

Floats = NDArray[np.float64]


class BaseHFS(Labelling):
    """Common part of the classifier and the regressor."""

    def fit_edges(
        self,
        edges: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        n_nodes: int | None = None,
        sparsifier: StreamingSparsifier | None = None,
        at: Any = None,
        since: Any = None,
    ) -> Self:
        """Fit to a stream of edges.

        Parameters
        ----------
        edges : stream, Graph, table, or tuple (u, v), (u, v, w) or (u, v, w, t) of arrays
            A stream is any iterable of such tuples, for example ``read_edges(...)`` or a list. A
            graph may be one of networkx, whose nodes keep their names. A table or data frame is
            read by `read_edges` with its defaults. Each
            edge is listed once, in either direction; the weights of parallel edges add up. With
            ``passes > 1`` the stream is read several times.
        y : array-like of shape (n_nodes,), dict {node: label}, Series or table
            Labels. None and NaN, and for classes -1, mean unlabelled. If the stream has ids, as
            that of `read_edges` does, the keys of a dict are ids, and results are in the order of
            ``edges.nodes.ids()``, as an array y must be; it is refused if ids are 0, 1, 2, ... in
            another order. The index of a pandas Series has the nodes, as the first column of a
            table of two columns, or its column "node", does. The labels have no influence on the
            sparsifier. A node may have several labels or a distribution; see `fit`.
        sample_weight : array-like of shape (n_nodes,), dict {node: weight}, Series or table, \
optional
            How much each label counts; see `fit`. If a node of a dict has several labels, its
            weight may be a list with one number for each of them.
        n_nodes : int, optional
            Number of nodes, if neither `y` nor the stream determines it. If it is unknown, nodes
            may appear at any time.
        sparsifier : StreamingSparsifier, optional
            Takes in the edges, instead of a new one with the given `epsilon`, `max_edges`,
            `half_life` and `horizon`.
        at : number or date, optional
            With a half-life: the time for which to answer, not before the latest edge, which is
            the default.
        since : number or date, optional
            The time of the oldest edges that count. Without a horizon, earlier ones are left out as
            they are read, here and in `refine`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> batches = [([0, 1], [1, 2]), ([2, 3], [3, 4], [0.1, 1.0])]
        >>> HFSClassifier().fit_edges(batches, {0: "a", 4: "b"}).transduction_.tolist()
        ['a', 'a', 'a', 'b', 'b']

        Node 2 is probably a "b", and this counts as much as five labels:

        >>> y = {0: "a", 2: {"a": 0.1, "b": 0.9}, 4: "b"}
        >>> model = HFSClassifier().fit_edges(batches, y, sample_weight={2: 5.0})
        >>> model.transduction_.tolist()
        ['a', 'a', 'b', 'b', 'b']

        Edges with times, of which the newest counts most:

        >>> timed = [([0, 1], [1, 2], None, [10.0, 70.0])]
        >>> model = HFSClassifier(half_life=10).fit_edges(timed, {0: "a", 2: "b"})
        >>> model.transduction_.tolist()
        ['a', 'b', 'b']
        """
        self._check_parameters()
        is_first = sparsifier is None or sparsifier.n_edges_seen_ == 0
        given = edges
        edges = as_edges(given, None if sparsifier is None else sparsifier.nodes, is_first=is_first)
        y, sample_weight = pair_by_node(y, sample_weight, by_index=True)
        if is_table(given) and y is not None and not is_mapping(y, edges.nodes):
            raise TypeError(
                f"the nodes of a {type(given).__name__} of edges have ids, so labels need them, "
                f"too; give y as a dict {{node: label}}, a Series or a table"
            )
        # The table of a stream has only the nodes read so far.
        if n_nodes is None and (edges.nodes_are_final or edges.nodes is None):
            n_nodes = edges.n_nodes
        if n_nodes is None and y is not None and not is_mapping(y, edges.nodes):
            n_nodes = len(y)
        for name in ("X_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._label(edges, y, sample_weight, n_nodes, sparsifier, at, since)
        warn_default_index(y, len(self.reached_))
        return self

    def update(self, edges: Any, *, at: Any = None, since: Any = None) -> Self:
        """Take in more edges; later answers count them, too.

        Answers are computed when they are asked for, from the kept graph alone, starting from the
        previous answer. Can be called before `fit`; then `relabel` gives the first labels.

        Parameters
        ----------
        edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
            Only the new edges, which may have new nodes. A stream of `read_edges` after another
            one needs ``nodes=model.nodes_``, so that the same id is the same node. Edges may also
            be those of a `StreamingSparsifier`: it is merged, or, if there are no edges yet, the
            estimator continues with it.
        at, since : number or date, optional
            As for `fit_edges`, for all answers until the next update; `since` needs a horizon.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier
        >>> model = HFSClassifier().update(([0, 1], [1, 2])).relabel({0: "a", 2: "b"})
        >>> model.update(([2], [3])).transduction_.tolist()
        ['a', 'a', 'b', 'b']

        A sparsifier that was made before, perhaps on another machine:

        >>> from ohmlearn import StreamingSparsifier
        >>> sparsifier = StreamingSparsifier(random_state=0).update([0, 1], [1, 2])
        >>> model = HFSClassifier().update(sparsifier).relabel({0: "a", 2: "b"})
        >>> model.transduction_.tolist()
        ['a', 'a', 'b']
        """
        if not hasattr(self, "_seed"):
            self._check_parameters()
            self._start(None)
        edges = self._as_edges(edges)
        check_moments(edges.time_unit, at, since)
        with phase(Phase("reading edges", 1, 1), self.verbose):
            self._take(edges, at, since)
        return self

    def _as_edges(self, edges: Any) -> Edges:
        """Return edges in a form that can be taken in after those so far."""
        if self.sparsifier_ is not None:
            is_first = self.sparsifier_.n_edges_seen_ == 0
        else:
            is_first = self._all_edges is None or self._all_edges.n_nodes == 0
        return as_edges(edges, self._nodes, is_first=is_first)

    def relabel(self, y: Any, *, sample_weight: Any = None) -> Self:
        """Change the labels without reading the edges again.

        Parameters
        ----------
        y : array-like of shape (n_nodes,), dict {node: label}, Series or table
            All labels, including earlier ones that are still valid. As for `fit_edges`; after
            `fit` to points, a Series has one entry for each of them, in their order.
        sample_weight : array-like of shape (n_nodes,), dict {node: weight}, Series or table, \
optional
            As for `fit_edges`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> model = HFSClassifier().fit_edges(gallery.path(4), {0: "a", 3: "b"})
        >>> model.relabel({0: "b", 3: "a"}).transduction_.tolist()
        ['b', 'b', 'a', 'a']
        """
        check_is_fitted(self, "_seed")
        by_index = self._nodes is not None or not hasattr(self, "n_features_in_")
        y, sample_weight = pair_by_node(y, sample_weight, by_index=by_index)
        n_nodes = self.graph_.n_nodes if self._n_nodes is None else self._n_nodes
        before = self.__dict__.copy()
        try:
            self._set_labels(self._read_labels(y, n_nodes, self._nodes, sample_weight))
            self._answer = None
            self._solve()
        except BaseException:  # the earlier labels and answers stay valid
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        warn_default_index(y, len(self.reached_))
        return self

    def refine(self, edges: Any, *, passes: int = 3) -> Self:
        """Improve the present answer by more passes over all edges seen so far.

        Starts from the present answer if earlier passes have improved it, else from the
        sparsifier. Does nothing if the answer is that of all edges already.

        Parameters
        ----------
        edges : stream, Graph, or tuple (u, v) or (u, v, w) of arrays
            All edges; a stream is read several times.
        passes : int
            Largest number of passes.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import HFSClassifier, gallery
        >>> graph = gallery.complete(300)
        >>> model = HFSClassifier(passes=1, epsilon=0.9, random_state=0)
        >>> model = model.fit_edges(graph, {0: "a", 1: "b"}).refine(graph, passes=12)
        >>> bool(model.residual_.max() < 1e-4)
        True
        """
        check_is_fitted(self, "_labels")
        edges = self._as_edges(edges)
        self._check_same_nodes(edges.nodes)
        if not self._holds_all_edges():
            before = self._answer if self._answer is not None and self._answer.passes else None
            done = self.n_iter_ - 1 if before is not None else 0
            self._refine(edges if self._first is None else edges.since(self._first), passes, before)
            self.n_iter_ += done
        self._solve()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file with a checksum, completely or not at all.

        The file holds everything that later answers depend on: parameters, ids, labels, the
        sparsifier (or all edges, if ``epsilon=None``), the points of `fit`, and the present answer.
        Nothing is pickled. A `random_state` that is a generator is replaced by the seed in use. A
        function as `affinity` cannot be saved.

        Parameters
        ----------
        path : str or path
            Name of the file; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> from ohmlearn import HFSClassifier
        >>> model = HFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.ohm")
        ...     loaded = HFSClassifier.load(f"{folder}/model.ohm")
        >>> loaded.update(([2], [3])).transduction_.tolist()
        ['a', 'a', 'b', 'b']
        """
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved estimator, which continues bit for bit as if it had never stopped.

        To take in more edges with ids, read them with the ids of the estimator:
        ``model.update(read_edges(path, nodes=model.nodes_))``.

        Parameters
        ----------
        path : str or path
            A file written by `save`; see there for an example.

        Raises
        ------
        ValueError
            Names the file and what is wrong with it. It is safe to load any file.
        """
        return load_model(cls, path)

    # Answers.

    @property
    def scores_(self) -> Floats:
        """Harmonic functions, one column for each class; 0 where `reached_` is False."""
        return self._solve().f

    @property
    def reached_(self) -> NDArray[np.bool_]:
        """Whether a node is connected to any label, or has one itself."""
        reached = self._solve().reached.copy()
        reached[self.labelled_] = True
        return reached

    @property
    def residual_(self) -> Floats:
        """Relative residual of each column of `scores_`; see ``HFSResult.residual``."""
        return self._solve().residual

    @property
    def converged_(self) -> NDArray[np.bool_]:
        """Whether each column of `scores_` has reached the tolerance, as far as is known."""
        return self._solve().converged

    @property
    def uncertainty_(self) -> Floats:
        """Posterior standard deviation of the score of every node; infinite if not `reached_`.

        In units of the error of a label. It depends on where labels are, not on what they say, and
        shows regions that are far from all of them. Computed from samples, 64 solves in all.
        """
        n_nodes = len(self._solve().reached)
        found = np.full(n_nodes, np.inf)
        found[self.labelled_] = 1.0 / np.sqrt(self._labels.weights)  # for nodes without an edge
        graph, labels = self._problem()
        known = posterior_std(
            graph,
            labels.nodes,
            gamma=self._choose_gamma() if self.method_ == "harmonic" else 1.0,
            sample_weight=labels.weights,
            random_state=self._seed,
            n_jobs=self.n_jobs,
        )
        at = np.flatnonzero(np.isfinite(known))
        found[at] = known[at]
        return found

    def suggest_labels(self, k: int = 10, *, exclude: Iterable[Any] = ()) -> list[Suggestion]:
        """Suggest which nodes to label next, best first.

        Nodes in components without a label come first, by the size of the component; then nodes
        whose labels would change the answers most: centres of regions without labels, later nodes
        between classes. No two of them are neighbours. Reads no edge: the kept graph is enough.
        Works without any label, too, after `update`.

        Labels that are chosen are no random sample of the nodes. Keep some that are drawn at random
        if `accuracy_estimate_` and probabilities are to be trusted.

        Parameters
        ----------
        k : int
            Number of suggestions.
        exclude : iterable
            Nodes that cannot be labelled: numbers, or ids if the edges have them.

        Returns
        -------
        list of Suggestion
            With the attributes `node` (its id, if the edges have ids), `kind`, `n_settled` and
            `reason`.

        Examples
        --------
        >>> from ohmlearn import HFSClassifier, gallery
        >>> two = gallery.disjoint_union(gallery.path(30), gallery.complete(5))
        >>> model = HFSClassifier(random_state=0).update(two)
        >>> [found.reason for found in model.suggest_labels(2)]
        ['covers a component of 30 nodes without a label',
         'covers a component of 5 nodes without a label']
        """
        check_is_fitted(self, "_seed")
        nodes = self._nodes
        excluded = list(exclude)
        if nodes is not None:
            excluded = nodes.find(excluded, missing="mask").compressed().tolist()
        found = suggest_nodes(
            self.graph_,
            getattr(self, "labelled_", ()),
            k,
            exclude=excluded,
            random_state=self._seed,
            n_jobs=self.n_jobs,
            **self._what_is_known(),
        )
        if nodes is None:
            return found
        ids = nodes.ids(np.array([one.node for one in found], dtype=np.int64)).tolist()
        return [replace(one, node=name) for one, name in zip(found, ids, strict=True)]

    def _what_is_known(self) -> dict[str, Any]:
        """Return what `suggest_nodes` can use besides the graph."""
        return {}
