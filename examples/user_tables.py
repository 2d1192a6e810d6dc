"""Two tables of a user, outside the lake: each has a column to look for joinable columns with.

- `my_suppliers.csv`: the companies stand in the lake letter for letter, so that a join by equal
  values finds them.
- `my_autographs.csv`: no name stands in the lake letter for letter, yet every person does, under
  another spelling; six names are misspelt as well.
"""

from facts.sheet import Sheet, parse
from facts.spellings import family_capitals, unaccented

SUPPLIERS = parse("""
supplier|contract_since|orders|spend_eur
Siemens|2019-03-01|42|184200
SAP|2020-01-15|6|96000
Bosch|2018-07-01|31|71350
BASF|2021-05-20|18|45900
Philips|2017-11-02|12|38400
ABB|2019-09-16|9|127500
Nokia|2022-02-01|7|23100
Ericsson|2022-02-01|5|19800
Equinor|2023-06-12|11|64000
Volvo|2016-04-18|3|241000
Michelin|2016-04-18|24|15600
Shell|2015-01-01|58|83400
Unilever|2021-10-05|36|9700
Danone|2021-10-05|40|12250
Nestlé|2020-08-24|44|18900
Microsoft|2018-01-01|12|110400
IBM|2014-06-30|4|52000
Intel|2019-12-09|15|33300
Sony|2022-03-21|8|14100
Toyota|2017-05-08|6|198000
Samsung|2023-01-30|21|47500
Hyundai|2024-02-14|2|61000
""")

AUTOGRAPHS = parse("""
signed_by|bought_on|price_eur|kind
Curie, Marie|12.04.2011|4800|letter
Einstein, Albert|03.09.2012|9500|postcard
Bohr, Niels|21.01.2013|1450|letter
Planck, Max|17.05.2013|1300|letter
Heissenberg, Werner|08.11.2013|820|photograph
Shrödinger, Erwin|30.03.2014|1900|postcard
Dirac, Paul|14.06.2014|2200|offprint
Fermi, Enrico|02.02.2015|1750|letter
Feynman, Richard|19.08.2015|3900|book
Röntgen, Wilhelm Conrad|25.10.2015|2600|card
Becquerel, Henri|11.03.2016|950|letter
Marconi, Guglielmo|06.07.2016|680|photograph
Rutherfort, Ernest|23.09.2016|1500|letter
Pauling, Linus|15.01.2017|340|photograph
Flemming, Alexander|04.04.2017|1250|letter
Darwin, Charles|28.06.2017|7600|letter
Pasteur, Louis|09.12.2017|2900|letter
Mendelev, Dmitri|20.02.2018|5200|document
Ampère, André-Marie|13.05.2018|1100|letter
Tesla, Nikola|01.10.2018|4100|card
Meittner, Lise|18.03.2019|890|letter
Noether, Emmy|27.07.2019|2750|postcard
Gödel, Kurt|05.11.2019|3300|offprint
Poincaré, Henri|16.02.2020|780|letter
Hopper, Grace|22.08.2021|410|book
""")


def _as_catalogued(name: str) -> str:
    return family_capitals(unaccented(name))


def user_sheets() -> list[Sheet]:
    """Return the two tables, with paths relative to `examples/`."""
    autographs = AUTOGRAPHS.select(
        signed_by=("signed_by", _as_catalogued),
        bought_on="bought_on",
        price_eur="price_eur",
        kind="kind",
    )
    return [Sheet("my_suppliers.csv", SUPPLIERS), Sheet("my_autographs.csv", autographs)]
