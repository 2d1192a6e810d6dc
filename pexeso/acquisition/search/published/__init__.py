"""The search for a plan as the paper has it: minimal graphs by landmarks, then a random walk.

==============================  ====================================================================
paper                           module
==============================  ====================================================================
options, l                      `options`: `PublishedOptions`
landmarks                       `landmarks`: paths of least weight to a few tables
source and target vertices      `covers`: smallest sets of tables that have all columns
step 1, minimal graphs IG       `minimal_graphs`
target graphs on an IG          `known_plans`, each measured once
step 2, Algorithm 1             `walk`
larger samples, the answer      `rounds`: `published_plans`
==============================  ====================================================================

It finds good plans, not the best one, and says nothing of how much better a plan could be.
"""
