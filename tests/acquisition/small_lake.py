"""A lake of shops: chains of joins, measures that are no keys, and tables apart."""

import numpy as np
import pyarrow as pa

SHOPS = [f"shop {at}" for at in range(12)]
CITIES = ["Oslo", "Rome", "Bern", "Lyon", "Turin", "Gent"]
STATES = ["NO", "IT", "CH", "FR", "IT", "BE"]


def shop_tables(seed=0):
    random = np.random.default_rng(seed)
    weeks = [f"2024-W{at:02}" for at in range(1, 11)]
    return {
        "shops.csv": {
            "shop_name": SHOPS,
            "city": [CITIES[at % 6] for at in range(12)],
            "area": random.integers(50, 900, 12).tolist(),
        },
        "geo/cities.csv": {
            "City": CITIES,
            "state": STATES,
            "people": random.integers(10**5, 10**6, 6).tolist(),
        },
        "geo/states.csv": {
            "state": sorted(set(STATES)),
            "currency": ["EUR", "CHF", "EUR", "EUR", "NOK"],
        },
        "weather.csv": {
            "city": [CITIES[at % 6] for at in range(60)],
            "week": [weeks[at // 6] for at in range(60)],
            "rain": np.round(random.random(60) * 40, 1).tolist(),
            "area": random.integers(50, 900, 60).tolist(),
        },
        "apart.csv": {"code": [f"k{at}" for at in range(9)], "value": list(range(9))},
    }


def own_sales(seed=1):
    random = np.random.default_rng(seed)
    weeks = [f"2024-W{at:02}" for at in range(1, 11)]
    return pa.table(
        {
            "shop": [SHOPS[at % 12] for at in range(120)],
            "week": [weeks[at // 12] for at in range(120)],
            "amount": np.round(random.random(120) * 1000, 2),
        }
    )
