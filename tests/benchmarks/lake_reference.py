"""The reference rates of calibrated lakes.

They are those of the real lake ``web``, as `lake_profile` measured them.

The lake: wikitables, fivethirtyeight and pudding; fastText trained on them, 100 dimensions, seed 0;
282,155 values, 10,809 columns, 427,910 postings; fingerprint `WEB_FINGERPRINT` (fastText's training
is not repeatable to the bit). Means of `profile_lake` with its defaults and the seeds 0 to 5.
"""

from __future__ import annotations

WEB_FINGERPRINT = "91f574bd19094690"

WEB_RATES = {
    "match_rate": 3.3e-6,
    "duplicate_rate": 1.517,
    "pivots_5": 6.05e-2,
    "axes_8": 6.3e-4,
    "axes_16": 3.9e-5,
}
"""Between seeds: 2.8 to 3.6e-6, none, 5.98 to 6.15e-2, 5.6 to 7.2e-4, 3.6 to 4.3e-5."""

WEB_NEARER = {
    0.04: 2.5e-7,
    0.08: 1.8e-6,
    0.12: 3.3e-6,
    0.16: 5.2e-6,
    0.2: 9.2e-6,
    0.25: 2.0e-5,
    0.3: 4.2e-5,
    0.35: 9.4e-5,
    0.4: 2.2e-4,
    0.45: 4.9e-4,
    0.5: 1.05e-3,
    0.7: 9.1e-3,
    1.0: 3.95e-2,
    1.3: 0.353,
}
"""Share of pairs nearer than each distance."""
