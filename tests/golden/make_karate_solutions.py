"""Write karate_solutions.json: solutions on Zachary's karate club by scipy's sparse LU.

Run again only to add cases: python tests/golden/make_karate_solutions.py
"""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

club = nx.karate_club_graph()
edges = [(u, v, float(d["weight"])) for u, v, d in club.edges(data=True)]
laplacian = sp.csc_array(nx.laplacian_matrix(club).astype(float))
n = club.number_of_nodes()

# First 0.1 L + I_S with the two leaders labelled; then one ampere from one to the other, mean zero.
ground = np.zeros(n)
ground[[0, 33]] = 1.0
labels = np.zeros(n)
labels[0], labels[33] = 1.0, -1.0
harmonic = splu(sp.csc_array(0.1 * laplacian + sp.diags_array(ground))).solve(labels)
potential = np.zeros(n)
potential[1:] = splu(sp.csc_array(laplacian[1:, 1:])).solve(labels[1:])
potential -= potential.mean()

Path(__file__).with_name("karate_solutions.json").write_text(
    json.dumps(
        {
            "edges": edges,
            "gamma": 0.1,
            "labelled": [0, 33],
            "harmonic": harmonic.tolist(),
            "potential": potential.tolist(),
        },
        indent=1,
    )
    + "\n"
)
