"""
Rows on the workers of a cluster
================================

Fit a classifier to rows that never come to this process, and read the same certificate.

Needs ``adasdca[dask]``. To use your own scheduler, set ``ADASDCA_SCHEDULER`` to its address, e.g.
``tcp://10.0.0.1:8786``; a cluster of two workers in this process stands in for it here. For TLS,
``tls://10.0.0.1:8786``, set ``ADASDCA_CERTIFICATES`` to the folder of ``ca.pem``, ``cert.pem`` and
``key.pem``.
"""

import os
from pathlib import Path

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from distributed.security import Security

import adasdca.dask
from adasdca.plotting import COLORS

address, folder = os.environ.get("ADASDCA_SCHEDULER"), os.environ.get("ADASDCA_CERTIFICATES")
if folder:
    authority, certificate, key = (
        str(Path(folder) / f"{name}.pem") for name in ("ca", "cert", "key")
    )
    security = Security(
        tls_ca_file=authority,
        tls_client_cert=certificate,
        tls_client_key=key,
        require_encryption=True,
    )
else:
    security = None
local = None
if not address:
    local = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(address or local, security=security)

# %%
# Blocks of rows are made, or read, where they stay.


def block(k, n=5000, d=20):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, d))
    y = np.where(X @ np.linspace(-1, 1, d) + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


parts = [dask.delayed(block, nout=2)(k) for k in range(8)]
X = da.concatenate([da.from_delayed(part[0], (5000, 20), float) for part in parts])
y = da.concatenate([da.from_delayed(part[1], (5000,), float) for part in parts])
print(X)

# %%
# The client is found by itself. The certificate is that of all 40 000 rows together.

model = adasdca.dask.AdaSDCAClassifier(C=1.0, tol=1e-8).fit(X, y)
print(model.certificate_)

# %%
# The model is a local one. Predictions of collections are lazy, and computed where the rows are.

print(model.predict(np.eye(20)[:3]))
predictions = model.predict(X)
print(predictions)
print("accuracy", float((predictions == y).mean().compute()))

# %%
# What one block alone would have said, and what all of them say together.

truth = np.linspace(-1, 1, 20)
figure, axes = plt.subplots()
for k in range(4):
    alone = adasdca.AdaSDCAClassifier(tol=1e-8).fit(*block(k, n=500))
    axes.plot(alone.coef_[0], ".", color="0.6", label="500 rows of a block" if k == 0 else None)
axes.plot(model.coef_[0], "s", color=COLORS["blue"], label="all 40 000 rows")
scale = truth @ model.coef_[0] / (truth @ truth)
axes.plot(scale * truth, color=COLORS["orange"], label="truth, up to its scale")
axes.set(xlabel="feature", ylabel="coefficient")
axes.legend()
plt.show()

client.close()
if local:
    local.close()
