"""
A million payments, twenty labels
=================================

A million payments between accounts arrive as a stream. Twenty accounts have been checked: eight
took part in abuse, and twelve are fine. Which accounts should be checked next?
"""

# %%
# The events
# ----------
# Fifty thousand customers pay shops and one another. A few shops are very popular. There are also
# twelve rings of 30 to 210 accounts. Their members send money to other members of the ring and
# sometimes to another ring. As camouflage, they also pay in shops and send money to honest
# customers.

import resource
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(7)
n_honest, n_shops, n_events = 50_000, 2_000, 1_000_000
rings = np.split(
    np.arange(n_honest, n_honest + 900),
    np.sort(rng.choice(np.arange(1, 29), 11, replace=False)) * 30,
)
members = np.concatenate(rings)
n_customers = n_honest + len(members)
names = np.array([f"ACC-{code:07d}" for code in rng.choice(10**7, n_customers, replace=False)])
shops = np.array([f"SHOP-{code:05d}" for code in rng.choice(10**5, n_shops, replace=False)])


def ring_payments(n):
    """Return payments, most of them within a ring and some between rings."""
    ring_of = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
    payer = rng.integers(len(members), size=n)
    ring = ring_of[payer]
    away = rng.random(n) < 0.03
    ring[away] = (ring[away] + rng.integers(1, 4, away.sum())) % len(rings)
    payee = np.array([rng.choice(rings[r]) for r in ring])
    return members[payer], payee


def friends(n):
    """Return payments between people who live near one another, honest or not."""
    payer = rng.integers(n_customers, size=n)
    return payer, (payer + rng.geometric(0.002, n) * rng.choice([-1, 1], n)) % n_customers


popularity = 1.0 / np.arange(1, n_shops + 1)
n_ring, n_friends = 40_000, 400_000
n_shopping = n_events - n_ring - n_friends
people = rng.permutation(n_customers)  # who lives where
a, b = friends(n_friends)
c, d = ring_payments(n_ring)
payer = names[np.concatenate([people[a], c, rng.integers(n_customers, size=n_shopping)])]
payee = np.concatenate(
    [
        names[np.concatenate([people[b], d])],
        shops[rng.choice(n_shops, n_shopping, p=popularity / popularity.sum())],
    ]
)
amount = rng.lognormal(3.5, 1.0, n_events).round(2)
order = rng.permutation(n_events)

path = Path(tempfile.mkdtemp()) / "payments.csv"
with path.open("w") as file:
    file.write("payer,payee,amount\n")
    file.writelines(
        f"{p},{q},{x}\n" for p, q, x in zip(payer[order], payee[order], amount[order], strict=True)
    )
print(path.read_text()[:130])
print(f"{path.stat().st_size / 2**20:.0f} MiB of text")

# %%
# One pass
# --------
# Amounts differ by orders of magnitude, so their logarithm is a better measure of how close two
# accounts are. Any iterable of batches ``(u, v, w)`` is a stream of edges. ``stream.nodes`` numbers
# the ids in the order of their first appearance.

from ohmlearn import HFSClassifier, read_edges

stream = read_edges(path, source_col="payer", target_col="payee", weight_col="amount")


class Payments:
    """The payments in batches, from the beginning in each pass."""

    def __iter__(self):
        for u, v, w, _ in stream:
            yield u, v, np.log1p(w)


def peak_memory():
    """Return the peak memory of the process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


before = peak_memory()
model = HFSClassifier(max_edges=250_000, class_prior={"abuse": 0.02, "fine": 0.98}, random_state=0)
seen, held = [0], [0]
for batch in Payments():
    model.update(batch, solve=False)
    seen.append(model.sparsifier_.n_edges_seen_)
    held.append(model.sparsifier_.n_rows_)
print(f"{seen[-1]:,} payments among {len(stream.nodes):,} accounts")
print(f"{held[-1]:,} edges held at the end, peak memory grew by {peak_memory() - before:.0f} MiB")

# %%
# Twenty labels
# -------------
# Here the labels are added after the edges; they can also be added earlier. The file can be read
# again, so two more passes compute the scores from all payments and not only from the ones that
# were kept.
#
# Eight of the twenty labels are abuse, but far fewer of the accounts are. Suppose that about two in
# a hundred are, from experience. Above, ``class_prior`` said so, and the labels have these shares.

known_bad = rng.choice(members, 8, replace=False)
known_fine = rng.choice(n_honest, 12, replace=False)
labels = dict.fromkeys(names[known_bad], "abuse") | dict.fromkeys(names[known_fine], "fine")
numbers = stream.nodes.find(np.array(list(labels)))
abuse = 0  # the first of model.classes_, which are sorted

model.relabel(dict(zip(numbers.tolist(), labels.values(), strict=True)))
one_pass = model.label_distributions_[:, abuse]
model.refine(Payments(), passes=2)
suspicion = model.label_distributions_[:, abuse]
print(f"after three passes, relative residual {model.residual_.max():.1e}")
print(f"{np.mean(model.transduction_ == 'abuse'):.1%} of the accounts are labelled as abuse")

# %%
# Which accounts to check
# -----------------------

from sklearn.metrics import average_precision_score, precision_recall_curve

unknown = np.ones(len(stream.nodes), dtype=bool)
unknown[numbers] = False
ids = stream.nodes.ids()[unknown]
truth = np.isin(ids, names[members])
one_pass, suspicion = one_pass[unknown], suspicion[unknown]
ranking = np.argsort(-suspicion)
for count in (100, 500, 900, 1500):
    hits = truth[ranking[:count]].sum()
    shares = f"precision {hits / count:.2f}, recall {hits / truth.sum():.2f}"
    print(f"the {count:5,} most suspicious: {shares}")
print(f"average precision {average_precision_score(truth, suspicion):.2f}")
print("check first:", ", ".join(ids[ranking[:3]]))

# %%
# Of the 52,880 accounts, 1.7% take part in abuse. Honest accounts that often trade with rings get
# high scores, too, because of the camouflage. All probabilities are close to one half, because
# twenty labels are too few to be sure about single accounts. But the order of the accounts is good.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6))
for scores, name, style in ((suspicion, "three passes", "-"), (one_pass, "one pass", ":")):
    precision, recall, _ = precision_recall_curve(truth, scores)
    left.plot(recall, precision, style, label=name)
left.axhline(truth.mean(), color="C4", linestyle="--", label="by chance")
left.set(xlabel="recall", ylabel="precision", title="Found from 20 labels", ylim=(0, 1.02))
left.legend(loc="lower left", bbox_to_anchor=(0, 0.05))
bins = np.linspace(suspicion.min(), suspicion.max(), 60)
middle.hist(suspicion[~truth], bins, color="C0", label="honest", density=True)
middle.hist(suspicion[truth], bins, color="C1", label="abuse", density=True, alpha=0.8)
middle.set(xlabel="probability of abuse", ylabel="density", title="Scores of both groups")
middle.set(yscale="log", ylim=(1e-3, None))
middle.legend()
right.plot(np.array(seen) / 1e6, np.array(held) / 1e6, label="edges held")
right.plot([0, 1], [0, 1], color="C4", linestyle="--", label="all edges")
right.set(xlabel="payments seen, millions", ylabel="edges, millions", title="Edges kept")
right.legend()
plt.show()
