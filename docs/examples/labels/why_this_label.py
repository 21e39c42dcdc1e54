"""
Why this label
==============

An account is said to belong to a ring. Which known accounts, and which payments, is this based on?
What would have to be wrong for the answer to be another one?
"""

# %%
# The payments
# ------------
# The accounts of a ring mostly pay one another, and sometimes others. A few accounts are known.

import matplotlib.pyplot as plt
import numpy as np

from ohmlearn import HFSClassifier

rng = np.random.default_rng(13)
in_ring = np.arange(400) < 60
payer, payee = rng.integers(400, size=(2, 8000))
stays = (in_ring[payer] == in_ring[payee]) | (rng.random(8000) < 0.1)
pairs = zip(payer[stays].tolist(), payee[stays].tolist(), strict=True)
payments = [(f"acc-{a}", f"acc-{b}") for a, b in pairs][:2300]
known = {f"acc-{a}": "fraud" for a in range(0, 60, 10)}
known |= {f"acc-{a}": "fine" for a in range(60, 400, 17)}
model = HFSClassifier(random_state=0).fit_edges(payments, known)
print(model.review(n=3, thresholds=[0.5, 0.8]))

# %%
# One account
# -----------
# All labels contribute to the margin of "fraud" over "fine". The text names the largest
# contributions, and what would change the answer; each such change is confirmed by a refit.

why = model.explain("acc-212", n_labels=6)
print(why.text())

# %%
# A solid line is a path of payments, as wide as the current that it carries from the account to
# labels. Where no path carries much, a dashed line shows the contribution of the label alone. Blue
# speaks for the answer, and orange against it.

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
why.plot(axes)
plt.show()

# %%
# A borderline account
# --------------------
# Here nearly as much speaks against the answer as for it: look at both sides before you act.

doubtful = model.review(n=1).borderline["fraud"][0].node
why = model.explain(doubtful, n_labels=8)
print(why.text())
figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
why.plot(axes)
plt.show()

# %%
# Which payments matter
# ---------------------
# The support of a payment is how much the margin changes with its weight. Payments to known members
# of the ring support "fraud", and the others are against it.

strong = model.explain("acc-212").edges[:8][::-1]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
colours = ["tab:blue" if one.support > 0 else "tab:orange" for one in strong]
axes.barh(range(len(strong)), [one.support for one in strong], color=colours)
axes.set_yticks(range(len(strong)), [f"{one.source} – {one.target}" for one in strong])
axes.set_xlabel("support for the answer")
plt.show()
