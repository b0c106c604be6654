"""Time to an accuracy, beside other packages, on the same objective without an intercept:

P(w) = (1/n) Σ_i φ(x_i·w; y_i) + lam/2 ‖w‖².

solver.py     what a solver must answer to take part, and who takes part
ours.py, liblinear.py, scikit_learn.py, cyanure.py, snapml.py    one peer each
objective.py  P and the best value known
race.py       the runs, in turn
summary.py    from runs to times and ratios
report.py     tables and the pictures
"""
