# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of machine learning, each a second or so: wheels.py boosting|kmeans|xgboost|lightgbm THREADS."""
import os
import sys

import numpy as np

what, threads = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
x = rng.normal(size=(20000, 20))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
if what == "boosting":
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(x, y)
    print(f"{model.score(x, y):.4f}")
elif what == "kmeans":
    from sklearn.cluster import KMeans

    print(f"{KMeans(n_clusters=16, n_init=3, random_state=0, max_iter=60).fit(x).inertia_:.6g}")
elif what == "xgboost":
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=80, n_jobs=threads, tree_method="hist", random_state=0).fit(x, y)
    print(f"{model.score(x, y):.4f}")
elif what == "lightgbm":
    import lightgbm

    model = lightgbm.LGBMClassifier(n_estimators=80, n_jobs=threads, random_state=0, verbose=-1).fit(x, y)
    print(f"{model.score(x, y):.4f}")
else:
    sys.exit(f"wheels: there is no {what}")

