"""Errors as data: parts, styles, copies, and texts of users that look like tokens."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ohmlearn import LaplacianSolver, sparsify
from ohmlearn.cli import main
from ohmlearn.cli.messages import option_style
from ohmlearn.cluster.cluster_errors import PartitionError, WorkerError, in_partition
from ohmlearn.edge_log import LogError
from ohmlearn.errors import (
    CLOSE,
    NEXT,
    OPEN,
    InputError,
    InputTypeError,
    InPython,
    OhmWarning,
    Param,
    Place,
    Setting,
    SourceError,
    bad_value,
    query_style,
    render,
    text_of,
)
from ohmlearn.gallery import path
from ohmlearn.serve.decode_edges import BadBody
from ohmlearn.serve.serve_errors import Refused

ERRORS = [
    InputError(f"{Param('a_b', 3)} is wrong", remedy=f"use {Setting('c_d', 'x')}"),
    InputTypeError(f"{Param('a_b')} is wrong", value=7),
    SourceError("is bad", place=Place("e.csv", 3)),
    LogError("is damaged"),
    PartitionError(f"give {Param('a_b')}", place=Place("partition 3")),
    WorkerError(f"set {Param('a_b')}"),
    Refused(429, f"{Param('k')} must be", row=3, retry_after=2.5, headers={"A": "b"}, value="z"),
    BadBody("is bad", 4),
    OhmWarning(f"{Param('a_b', 3)} is odd"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_copies_have_all_parts(error):
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert (str(other), other.args) == (str(error), error.args)
        assert vars(other) == vars(error)
        assert other.render(query_style) == error.render(query_style)


def test_parts():
    error = ERRORS[0]
    assert (error.parameter, error.value) == ("a_b", "3")
    assert str(error) == 'a_b = 3 is wrong; use c_d="x"'
    assert error.render(query_style) == "a_b = 3 is wrong; use c_d=x"
    assert (ERRORS[1].parameter, ERRORS[1].value) == ("a_b", "7")
    assert str(ERRORS[2]) == "e.csv, row 3: is bad"
    assert ERRORS[2].render(with_place=False) == "is bad"
    assert bad_value("a", "be 1", np.int64(2)).value == "2"
    assert str(bad_value("a", "be 1", np.int64(2))) == "a must be 1, got 2"


def test_an_error_within_an_error_keeps_its_parameters():
    with pytest.raises(PartitionError) as caught, in_partition("partition 3"):
        sparsify(path(5), max_edges=3)
    error = pickle.loads(pickle.dumps(caught.value))  # as workers send it
    assert (error.parameter, error.value) == ("max_edges", "3")
    style = option_style(main.commands["label"])
    assert error.render(style).startswith("partition 3: --max-edges 3 is fewer")
    assert text_of(ValueError("a\n b")) == "a b"
    assert text_of(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    "text",
    [
        OPEN, CLOSE, NEXT, f"{OPEN}x{CLOSE}", f"{CLOSE}{OPEN}", f"{OPEN}a{NEXT}b{NEXT}c{CLOSE}",
        "{0} {name} {", "%s %(x)s", f"{OPEN} at the start",
    ],
)  # fmt: skip
def test_texts_of_users_stay(text):
    error = InputError(f"{text}: {Param('a_b', text)} and {Setting('c_d', text)} {text}")
    assert error.parameter == "a_b"
    assert str(error).startswith(f"{text}: a_b = ")
    assert str(error).endswith(f" {text}")
    assert render(text) == text


def test_filters_of_warnings_see_the_text():
    solver = LaplacianSolver(path(50))
    b = np.random.default_rng(0).normal(size=50)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*: raise tol$", category=ConvergenceWarning)
        solver.solve(b, tol=1e-300)
    with pytest.warns(ConvergenceWarning, match="raise tol$"):
        solver.solve(b, tol=1e-300)


def test_values_are_written_as_each_interface_does():
    text = f"{Setting('a', ('u', 'v'))} {Setting('b', ...)} {Setting('c', float('inf'))}"
    assert render(text) == 'a=("u", "v") b=... c=math.inf'
    assert render(text, query_style) == "a=u,v b=... c=inf"
    text = f"{Param('host', '0.0.0.0')} {Param('since', 7.0)} {Param('n', np.float64(1.5))}"
    assert render(text) == "host = '0.0.0.0' since = 7.0 n = 1.5"
    assert render(text, query_style) == "host = 0.0.0.0 since = 7 n = 1.5"
    words = f"{InPython('x_ says', 'the column says')} so"
    assert (render(words), render(words, query_style)) == ("x_ says so", "the column says so")


def test_options_of_commands():
    style = option_style(main.commands["label"])
    for token, option in (
        (Param("n_jobs", 3), "--threads 3"),
        (Param("random_state"), "--seed"),
        (Setting("horizon", "7d"), "--horizon 7d"),
        (Param("sample_weight"), "--read-labels weight=..."),
        (Setting("bipartite", ("user", "item")), "--bipartite user,item"),
        (Setting("bipartite", True), "--bipartite columns"),
        (Setting("bipartite", False), "--bipartite no"),
        (Setting("header", False), "--read header=no"),
        (Setting("delimiter", ...), "--read delimiter=..."),
        (Setting("time", "ts"), "--time ts"),
        (Setting("normalization", None), "--option normalization=none"),
        (Setting("affinity", "knn"), 'affinity="knn"'),  # there is no such option
    ):
        assert render(f"{token}", style) == option
    assert render(f"{Param('epsilon', 1)}", option_style(main.commands["log"])) == "--epsilon 1"
    assert render(f"{Param('max_edges', 1)}", option_style(None)) == "max_edges = 1"
