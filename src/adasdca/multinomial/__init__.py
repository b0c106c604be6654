"""Multinomial logistic regression by Newton's method.

`margins` has the rows' part of the objective, `intercept` its best intercept, `objective` the whole
for `adasdca.newton`, `equations` the equations of a step; `certificate` bounds what is left to
gain, and `solver` puts them together.
"""
