"""The tables of the paper's introduction, ages and zip codes as texts."""

import pyarrow as pa

ROWS = {
    "DS": (
        ("Age", "Zipcode", "Population"),
        [
            ("[35,40]", "10003", 7000),
            ("[20,25]", "01002", 3500),
            ("[55,60]", "07003", 1200),
            ("[35,40]", "07003", 5800),
            ("[35,40]", "07304", 2000),
        ],
    ),
    "D1": (
        ("Zipcode", "State"),
        [("07003", "NJ"), ("07304", "NJ"), ("10001", "NY"), ("10001", "NJ")],
    ),
    "D2": (
        ("State", "Disease", "Cases"),
        [
            ("MA", "Flu", 300),
            ("NJ", "Flu", 400),
            ("Florida", "Lyme disease", 130),
            ("California", "Lyme disease", 40),
            ("NJ", "Lyme disease", 200),
        ],
    ),
    "D3": (
        ("Gender", "Race", "Disease", "Cases"),
        [
            ("M", "White", "Flu", 200),
            ("F", "Asian", "AIDS", 30),
            ("M", "White", "Diabetes", 4000),
            ("M", "Hispanic", "Flu", 140),
        ],
    ),
    "D4": (
        ("Age", "Gender", "Race", "Population"),
        [
            ("[35,40]", "M", "White", 400000),
            ("[20,25]", "F", "Asian", 100000),
            ("[20,25]", "M", "White", 300000),
            ("[40,45]", "M", "Hispanic", 50000),
        ],
    ),
    "D5": (
        ("Age", "Address", "Insurance", "Disease"),
        [
            ("[35,40]", "10 North St.", "UnitedHealthCare", "Flu"),
            ("[20,25]", "5 Main St.", "MedLife", "HIV"),
            ("[35,40]", "25 South St.", "UnitedHealthCare", "Flu"),
        ],
    ),
}
TABLES = {
    name: pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    for name, (names, rows) in ROWS.items()
}


def joined(left: pa.Table, right: pa.Table, on: list[str]) -> pa.Table:
    rows = [
        {**b, **a}
        for a in left.to_pylist()
        for b in right.to_pylist()
        if all(a[name] == b[name] for name in on)
    ]
    names = list(dict.fromkeys([*left.column_names, *right.column_names]))
    kinds = {**dict(zip(right.schema.names, right.schema.types, strict=True))}
    kinds |= dict(zip(left.schema.names, left.schema.types, strict=True))
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds[name]) for name in names]))
