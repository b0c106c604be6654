"""Section 6 of the paper, run again: experiments, their raw results, figures, claims and a page.

Needs the extra `adasdca[cli]`. One way through:

    experiments ─► grid (tasks) ─► runner ─► store (JSON lines) ─► results ─► figures, claims
                                  watching                          rates          └─► page

Everything right of the store is a function of the stored lines alone. `paper` and `questions` have
the sections of the page with the claims that are judged in them.
"""
