"""Solving (L + D) x = b for a graph Laplacian L and a diagonal D >= 0."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from threading import local
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from ohmlearn import _core
from ohmlearn._display import Shown
from ohmlearn._sharing import Shared
from ohmlearn._warnings import warn
from ohmlearn.checks.edge_arrays import check_columns
from ohmlearn.checks.parameters import (
    N_JOBS,
    RANDOM_STATE,
    Constraints,
    Interval,
    Options,
    check_fraction,
    check_n_jobs,
    check_parameters,
    check_seed,
    check_value,
)
from ohmlearn.errors import InputError, Param
from ohmlearn.graph.graph import Graph, split_sddm
from ohmlearn.reading.as_edges import as_graph

__all__ = ["LaplacianSolver", "SolveReport"]

Method = Literal["auto", "diagonal", "cholesky", "direct"]
METHODS: dict[str, _core.Method] = {name: getattr(_core.Method, name) for name in get_args(Method)}
CONSTRAINTS: Constraints = {
    "random_state": RANDOM_STATE,
    "n_jobs": N_JOBS,
    "method": (Options(tuple(METHODS)),),
}


@dataclass(frozen=True, repr=False)
class SolveReport(Shown):
    """What a solve did. Arrays have one entry per column of b.

    Attributes
    ----------
    method : str
        The method that found the answer: "diagonal", "cholesky" or "direct".
    reason : str
        Why this method was chosen.
    iterations : ndarray of int
    residual : ndarray of float
        True relative residuals ``norm(b - (L + D) x) / norm(b)``, with b after projection.
    converged : ndarray of bool
    rounding : ndarray of bool
        True where the residual is above the tolerance only because x is rounded to float64, so
        that no better answer can be stored. This happens if x is huge, for example if the ground is
        very small compared with the weights.
    projected_out : ndarray of float
        Fraction of the norm of each right-hand side that lay in the null space and was removed.
    setup_seconds : float
        Time spent on factors so far, in this solve and in earlier ones.
    solve_seconds : float
        Time of this solve, without the part that counts as `setup_seconds`.
    factor_entries : int
        Number of off-diagonal entries of the factor; 0 if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import LaplacianSolver, gallery
    >>> solver = LaplacianSolver(gallery.grid2d(5, 5))
    >>> x = solver.solve(np.ones(25))  # lies in the null space
    >>> solver.report_.method, solver.report_.projected_out.round(6).tolist()
    ('direct', [1.0])
    """

    method: str
    reason: str
    iterations: NDArray[np.int32]
    residual: NDArray[np.float64]
    converged: NDArray[np.bool_]
    rounding: NDArray[np.bool_]
    projected_out: NDArray[np.float64]
    setup_seconds: float
    solve_seconds: float
    factor_entries: int

    def _facts(self) -> dict[str, Any]:
        return {
            "method": f"{self.method} ({self.reason})",
            "columns": len(self.residual),
            "residual": float(self.residual.max(initial=0.0)),
            "iterations": int(self.iterations.max(initial=0)),
            "converged": bool(self.converged.all()),
            "seconds": self.setup_seconds + self.solve_seconds,
        }


class LaplacianSolver(Shown, Shared, LinearOperator):
    """Solver for (L + D) x = b, L the Laplacian of a graph and D >= 0 diagonal.

    It is a scipy ``LinearOperator``, the (pseudo-)inverse of L + D, for example as ``M`` of scipy's
    Krylov methods for a matrix that is close to L + D. Each product is a `solve`.

    If D is zero on a whole component, L + D is singular. Then b is projected on the vectors that
    sum to zero over the component, and the answer sums to zero as well, as with the pseudo-inverse.
    Factors are kept between solves. The same `random_state` gives the same answer to the last bit,
    for any number of threads and after any earlier solves.

    Threads may share a solver and take turns. The arrays of a call must not be changed by another
    thread before it returns. A forked child can use the solver; if another thread was solving at
    the time of the fork, the child builds the factors again.

    Parameters
    ----------
    graph : Graph, or a matrix that `Graph.from_scipy` accepts
        If you have L + D as a matrix, use `from_sddm`.
    ground : array-like of shape (n_nodes,) or float, optional
        The diagonal D: conductance from each node to the ground, not negative.
    random_state : int, Generator, RandomState or None
        Seeds the sampling inside the approximate factor.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. They share the right-hand sides. For a single one
        they share its rows and, on large graphs with small separators, the pieces of the factor.
    method : {"auto", "diagonal", "cholesky", "direct"}
        "direct" eliminates a dense matrix exactly (at most 5,000 nodes). The others are conjugate
        gradients, preconditioned by the diagonal or by an approximate Cholesky factor. "auto" takes
        "direct" up to 500 nodes and "cholesky" for meshes. Otherwise every solve starts with the
        diagonal and continues with a factor if convergence is slow. If you then solve many times
        for one column, "cholesky" saves these starts.

    Attributes
    ----------
    report_ : SolveReport
        What the last solve of this thread did; available after the first one.

    Examples
    --------
    >>> import numpy as np
    >>> from ohmlearn import Graph, LaplacianSolver
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> solver = LaplacianSolver(path)
    >>> solver.solve(np.array([1.0, 0.0, 0.0, -1.0]))
    array([ 1.5,  0.5, -0.5, -1.5])
    >>> solver.report_.method, bool(solver.report_.converged.all())
    ('direct', True)
    """

    def __init__(
        self,
        graph: object,
        *,
        ground: ArrayLike | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        method: Method = "auto",
    ) -> None:
        values = {"random_state": random_state, "n_jobs": n_jobs, "method": method}
        check_parameters("LaplacianSolver", CONSTRAINTS, values)
        self.graph: Graph = as_graph(graph)
        LinearOperator.__init__(self, np.float64, (self.graph.n_nodes, self.graph.n_nodes))
        self.ground = _check_ground(ground, self.graph.n_nodes)
        self.random_state, self.n_jobs, self.method = random_state, n_jobs, method
        if method == "direct" and self.graph.n_nodes > _core.DIRECT_LIMIT:
            raise InputError(
                f"{Param('method', 'direct')} keeps a dense matrix and takes at most "
                f"{_core.DIRECT_LIMIT} nodes, but the graph has {self.graph.n_nodes}; use "
                f'"auto" or "cholesky"'
            )
        self._seed = check_seed(random_state)
        self._make_lock()
        self._reports = local()
        self._core: _core.Solver | None = None
        self._solver()

    @classmethod
    def from_sddm(
        cls,
        A: object,
        *,
        random_state: object = None,
        n_jobs: int | None = None,
        method: Method = "auto",
    ) -> Self:
        """Make a solver for a matrix: a Laplacian, or one with larger diagonal entries (SDDM).

        Parameters
        ----------
        A : scipy sparse matrix or array, or ndarray, of shape (n_nodes, n_nodes)
            Symmetric, no positive entry off the diagonal, and no negative sum of a row. The sums
            are the ground, where they are more than rounding.
        random_state, n_jobs, method
            As in `LaplacianSolver`.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import LaplacianSolver
        >>> A = np.array([[3.0, -2.0], [-2.0, 2.0]])
        >>> LaplacianSolver.from_sddm(A).solve([1.0, 0.0], rtol=1e-6)
        array([1., 1.])
        """
        graph, ground = split_sddm(A)
        return cls(graph, ground=ground, random_state=random_state, n_jobs=n_jobs, method=method)

    def _solver(self) -> _core.Solver:
        """Return the solver of the core, made again after a fork; the caller must hold the lock."""
        if self._core is None:
            graph, method, threads = self.graph, METHODS[self.method], check_n_jobs(self.n_jobs)
            arrays = graph.indptr, graph.indices, graph.weights, self.ground
            self._core = _core.Solver(*arrays, method, self._seed, threads)
        return self._core

    def _cut_off(self) -> None:
        _core.never_free(self._core)  # its destructor could fail
        self._core = None

    @property
    def report_(self) -> SolveReport:
        """What the last solve of this thread did."""
        report: SolveReport | None = getattr(self._reports, "last", None)
        if report is None:
            raise AttributeError(
                "report_ is set by the first solve in this thread; call solve first"
            )
        return report

    def _adjoint(self) -> Self:
        return self

    _transpose = _adjoint

    def solve(
        self,
        b: ArrayLike,
        *,
        tol: float = 1e-8,
        max_iter: int | None = None,
        x0: ArrayLike | None = None,
        rtol: float | None = None,
    ) -> NDArray[np.float64]:
        """Solve for one right-hand side, or for several at once, which is faster than one by one.

        Parameters
        ----------
        b : array-like of shape (n_nodes,) or (n_nodes, n_columns)
            On each component without ground, the means of b and x are subtracted, so that the
            answer is that of the pseudo-inverse. ``report_.projected_out`` has the removed
            fraction.
        tol : float
            Relative residual at which a column has converged.
        max_iter : int, optional
            Largest number of iterations for a column; 5000 by default.
        x0 : array-like of the shape of b, optional
            Starting point; zero by default.
        rtol : float, optional
            scipy's name for `tol`, which it replaces if given.

        Returns
        -------
        x : ndarray of the shape of b

        Warns
        -----
        ConvergenceWarning
            If a column did not reach `tol`; `report_` has the residual of each.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import Graph, LaplacianSolver
        >>> star = Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> LaplacianSolver(star, ground=[1.0, 0.0, 0.0, 0.0]).solve(np.eye(4)[:, :2])
        array([[1., 1.],
               [1., 2.],
               [1., 1.],
               [1., 1.]])
        """
        if rtol is not None:
            tol = check_fraction("rtol", rtol)
        x = self.solve_block(b, tol, max_iter, x0)
        if not self.report_.converged.all():
            self._warn(tol)
        return x

    _matvec = _matmat = solve

    def solve_block(
        self,
        b: ArrayLike,
        tol: float,
        max_iter: int | None = None,
        x0: ArrayLike | None = None,
        overwrite: bool = False,
    ) -> NDArray[np.float64]:
        """Solve as `solve` does, without a warning if a column has not converged.

        For callers that look at `report_` themselves. With `overwrite`, the array x0 is used for
        the solution.
        """
        columns = check_columns(b, "b", self.graph.n_nodes)
        tolerance = check_fraction("tol", tol)
        check_value("max_iter", max_iter, None, Interval(Integral, 0))
        limit = 5000 if max_iter is None else min(int(max_iter), 2**31 - 1)
        if x0 is None:
            x = np.zeros_like(columns)
        else:
            x = check_columns(x0, "x0", self.graph.n_nodes)
            x = x if overwrite else np.array(x)
            if x.shape != columns.shape:
                must = f"have the shape of b, {np.shape(b)}"
                raise InputError(f"{Param('x0')} must {must}, got {np.shape(x0)}")
        with self._lock:
            solver = self._solver()
            before = solver.setup_seconds
            start = time.perf_counter()
            with self._changing():
                found = solver.solve(columns, x, tolerance, limit)
            seconds = time.perf_counter() - start
            iterations, residual, projected_out, rounding = found
            self._reports.last = SolveReport(
                method=solver.method.name,
                reason=solver.reason,
                iterations=iterations,
                residual=residual,
                converged=residual <= tolerance,
                rounding=rounding.astype(np.bool_),
                projected_out=projected_out,
                setup_seconds=solver.setup_seconds,
                solve_seconds=seconds - (solver.setup_seconds - before),
                factor_entries=solver.factor_entries,
            )
        return x[:, 0] if np.ndim(b) == 1 else x

    def _warn(self, tolerance: float) -> None:
        from ohmlearn._convergence import UnconvergedWarning  # late: it imports scikit-learn

        report = self.report_
        open_columns = np.flatnonzero(~report.converged)
        worst = open_columns[np.argmax(report.residual[open_columns])]
        if report.rounding[open_columns].all():
            remedy = f"float64 cannot store a better answer: raise {Param('tol')}"
        else:
            remedy = f"raise {Param('max_iter')} or {Param('tol')}"
        warn(
            f"{len(open_columns)} of {len(report.converged)} right-hand sides did not reach the "
            f"relative residual {tolerance:g}; the worst is column {worst} with "
            f"{report.residual[worst]:.2g} after {report.iterations[worst]} iterations "
            f"({report.method}); {remedy}",
            UnconvergedWarning,
        )

    def as_linear_operator(self, *, tol: float = 1e-8) -> LinearOperator:
        """Return the (pseudo-)inverse of L + D as a scipy LinearOperator.

        Parameters
        ----------
        tol : float
            Relative residual of each product.

        Examples
        --------
        >>> import numpy as np
        >>> from ohmlearn import Graph, LaplacianSolver
        >>> inverse = LaplacianSolver(Graph.from_edges([0], [1])).as_linear_operator()
        >>> inverse @ np.array([1.0, -1.0])
        array([ 0.5, -0.5])
        """
        return self._operator(partial(self.solve, tol=tol))

    def preconditioner(self) -> LinearOperator:
        """Return the preconditioner alone, as ``M`` for scipy's Krylov methods.

        Symmetric and positive semi-definite. With method "auto" this builds the factor.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse.linalg import cg
        >>> from ohmlearn import Graph, LaplacianSolver
        >>> ring = Graph.from_edges(np.arange(1000), np.arange(1, 1001) % 1000)
        >>> solver = LaplacianSolver(ring, random_state=0)
        >>> b = np.zeros(1000); b[0], b[500] = 1.0, -1.0
        >>> x, info = cg(ring.laplacian(), b, M=solver.preconditioner(), rtol=1e-8)
        >>> float((x[0] - x[500]).round(6))  # two halves of 500 ohms in parallel
        250.0
        """

        def apply(b: NDArray[Any]) -> NDArray[np.float64]:
            columns = check_columns(b, "b", self.graph.n_nodes)
            x = np.empty_like(columns)
            with self._lock, self._changing():
                self._solver().precondition(columns, x)
            return x[:, 0] if np.ndim(b) == 1 else x

        return self._operator(apply)

    def _operator(self, apply: Callable[[NDArray[Any]], NDArray[np.float64]]) -> LinearOperator:
        """Return a symmetric operator, of vectors and of columns."""
        same = dict.fromkeys(("matvec", "rmatvec", "matmat", "rmatmat"), apply)
        return LinearOperator(self.shape, dtype=np.float64, **same)

    def _facts(self) -> dict[str, Any]:
        return {"solver": repr(self)}

    def __repr__(self) -> str:
        shown = [repr(self.graph)]  # as in scikit-learn, without what has its default value
        if self.ground is not None:
            shown.append(f"ground=<array of shape {self.ground.shape}>")
        options = {"random_state": None, "n_jobs": None, "method": "auto"}
        given = ((name, getattr(self, name)) for name in options)
        shown += [f"{name}={value!r}" for name, value in given if value != options[name]]
        return f"LaplacianSolver({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        # The core is made again from the seed, bit for bit.
        return self._state() | {"_core": None, "_reports": getattr(self._reports, "last", None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_lock()
        self._reports = local()
        self._reports.last = state["_reports"]


def _check_ground(ground: Any, n_nodes: int) -> NDArray[np.float64] | None:
    """Return the diagonal D as a vector, or None if it is zero."""
    if ground is None:
        return None
    array = np.asarray(ground)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{Param('ground')} must be real numbers, got dtype {array.dtype}")
    if array.shape not in ((), (n_nodes,)):
        raise InputError(
            f"{Param('ground')} must be a number or have one entry per node, shape ({n_nodes},), "
            f"got shape {array.shape}"
        )
    vector = np.array(np.broadcast_to(array, (n_nodes,)), dtype=np.float64)
    bad = ~(np.isfinite(vector) & (vector >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{Param('ground')} must be finite and not negative, but ground[{at}] = {vector[at]}"
        )
    return vector if vector.any() else None
