"""Search for plans: which projections to buy so that their join explains what the shopper has.

================================  ==================================================================
paper                             module
================================  ==================================================================
A_S, A_T, B, alpha, beta          `request`: `AcquisitionRequest`
TG, target graphs                 `plans`: `JoinTree`
CORR, Q, w and p of TG            `evaluation`, exact, from counts
steps 1 and 2, Algorithm 1        `published`
================================  ==================================================================
"""
