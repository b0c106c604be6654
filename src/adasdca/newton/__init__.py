"""Second-order phases: semismooth Newton steps with an exact line search, on operators only.

`newton` takes the steps of any convex objective, `line` finds their length. `linear` is the
objective of a linear model, of a term that the backend's rows make and a penalty of `moreau`;
`equations` solves for its steps. `proximal` has steps of smooth losses and penalties with kinks, by
models that keep these. `multipliers` leads losses with kinks, L1 terms and bounds to
such objectives, round by round; `interior` goes along the central path where rounds are hard;
`working_set` leaves out features that an L1 term or bounds keep at rest.
"""
