"""Elements, scientists, units, universities, inventions and programming languages.

Symbols, names and rounded atomic weights follow IUPAC, units the International System (BIPM); prize
years are those of the Nobel Foundation; the rest is general knowledge of the history of science.
"""

from facts.sheet import parse

ELEMENTS = parse("""
number|symbol|element|atomic_weight|period
1|H|Hydrogen|1.008|1
2|He|Helium|4.003|1
3|Li|Lithium|6.94|2
4|Be|Beryllium|9.012|2
5|B|Boron|10.81|2
6|C|Carbon|12.011|2
7|N|Nitrogen|14.007|2
8|O|Oxygen|15.999|2
9|F|Fluorine|18.998|2
10|Ne|Neon|20.180|2
11|Na|Sodium|22.990|3
12|Mg|Magnesium|24.305|3
13|Al|Aluminium|26.982|3
14|Si|Silicon|28.085|3
15|P|Phosphorus|30.974|3
16|S|Sulfur|32.06|3
17|Cl|Chlorine|35.45|3
18|Ar|Argon|39.95|3
19|K|Potassium|39.098|4
20|Ca|Calcium|40.078|4
21|Sc|Scandium|44.956|4
22|Ti|Titanium|47.867|4
23|V|Vanadium|50.942|4
24|Cr|Chromium|51.996|4
25|Mn|Manganese|54.938|4
26|Fe|Iron|55.845|4
27|Co|Cobalt|58.933|4
28|Ni|Nickel|58.693|4
29|Cu|Copper|63.546|4
30|Zn|Zinc|65.38|4
31|Ga|Gallium|69.723|4
32|Ge|Germanium|72.630|4
33|As|Arsenic|74.922|4
34|Se|Selenium|78.971|4
35|Br|Bromine|79.904|4
36|Kr|Krypton|83.798|4
37|Rb|Rubidium|85.468|5
38|Sr|Strontium|87.62|5
39|Y|Yttrium|88.906|5
40|Zr|Zirconium|91.224|5
41|Nb|Niobium|92.906|5
42|Mo|Molybdenum|95.95|5
43|Tc|Technetium||5
44|Ru|Ruthenium|101.07|5
45|Rh|Rhodium|102.91|5
46|Pd|Palladium|106.42|5
47|Ag|Silver|107.87|5
48|Cd|Cadmium|112.41|5
49|In|Indium|114.82|5
50|Sn|Tin|118.71|5
51|Sb|Antimony|121.76|5
52|Te|Tellurium|127.60|5
53|I|Iodine|126.90|5
54|Xe|Xenon|131.29|5
55|Cs|Caesium|132.91|6
56|Ba|Barium|137.33|6
57|La|Lanthanum|138.91|6
58|Ce|Cerium|140.12|6
59|Pr|Praseodymium|140.91|6
60|Nd|Neodymium|144.24|6
61|Pm|Promethium||6
62|Sm|Samarium|150.36|6
63|Eu|Europium|151.96|6
64|Gd|Gadolinium|157.25|6
65|Tb|Terbium|158.93|6
66|Dy|Dysprosium|162.50|6
67|Ho|Holmium|164.93|6
68|Er|Erbium|167.26|6
69|Tm|Thulium|168.93|6
70|Yb|Ytterbium|173.05|6
71|Lu|Lutetium|174.97|6
72|Hf|Hafnium|178.49|6
73|Ta|Tantalum|180.95|6
74|W|Tungsten|183.84|6
75|Re|Rhenium|186.21|6
76|Os|Osmium|190.23|6
77|Ir|Iridium|192.22|6
78|Pt|Platinum|195.08|6
79|Au|Gold|196.97|6
80|Hg|Mercury|200.59|6
81|Tl|Thallium|204.38|6
82|Pb|Lead|207.2|6
83|Bi|Bismuth|208.98|6
84|Po|Polonium||6
85|At|Astatine||6
86|Rn|Radon||6
87|Fr|Francium||7
88|Ra|Radium||7
89|Ac|Actinium||7
90|Th|Thorium|232.04|7
91|Pa|Protactinium|231.04|7
92|U|Uranium|238.03|7
93|Np|Neptunium||7
94|Pu|Plutonium||7
95|Am|Americium||7
96|Cm|Curium||7
97|Bk|Berkelium||7
98|Cf|Californium||7
99|Es|Einsteinium||7
100|Fm|Fermium||7
101|Md|Mendelevium||7
102|No|Nobelium||7
103|Lr|Lawrencium||7
104|Rf|Rutherfordium||7
105|Db|Dubnium||7
106|Sg|Seaborgium||7
107|Bh|Bohrium||7
108|Hs|Hassium||7
109|Mt|Meitnerium||7
110|Ds|Darmstadtium||7
111|Rg|Roentgenium||7
112|Cn|Copernicium||7
113|Nh|Nihonium||7
114|Fl|Flerovium||7
115|Mc|Moscovium||7
116|Lv|Livermorium||7
117|Ts|Tennessine||7
118|Og|Oganesson||7
""")

DISCOVERIES = parse("""
element|discoverer|year
Hydrogen|Cavendish, Henry|1766
Nitrogen|Rutherford, Daniel|1772
Oxygen|Scheele, Carl Wilhelm|1771
Chlorine|Scheele, Carl Wilhelm|1774
Tungsten|Elhuyar, Juan José|1783
Uranium|Klaproth, Martin Heinrich|1789
Zirconium|Klaproth, Martin Heinrich|1789
Palladium|Wollaston, William Hyde|1802
Rhodium|Wollaston, William Hyde|1804
Sodium|Davy, Humphry|1807
Potassium|Davy, Humphry|1807
Lithium|Arfwedson, Johan August|1817
Selenium|Berzelius, Jöns Jacob|1817
Silicon|Berzelius, Jöns Jacob|1823
Bromine|Balard, Antoine Jérôme|1826
Aluminium|Ørsted, Hans Christian|1825
Caesium|Bunsen, Robert|1860
Rubidium|Bunsen, Robert|1861
Gallium|Lecoq de Boisbaudran, Paul-Émile|1875
Germanium|Winkler, Clemens|1886
Fluorine|Moissan, Henri|1886
Argon|Ramsay, William|1894
Neon|Ramsay, William|1898
Polonium|Curie, Marie|1898
Radium|Curie, Marie|1898
Protactinium|Meitner, Lise|1917
Technetium|Segrè, Emilio|1937
Plutonium|Seaborg, Glenn T.|1940
""")

SCIENTISTS = parse("""
name|born|died|country|field|prize
Curie, Marie|1867-11-07|1934-07-04|Poland|Physics|1903
Einstein, Albert|1879-03-14|1955-04-18|Germany|Physics|1921
Bohr, Niels|1885-10-07|1962-11-18|Denmark|Physics|1922
Planck, Max|1858-04-23|1947-10-04|Germany|Physics|1918
Heisenberg, Werner|1901-12-05|1976-02-01|Germany|Physics|1932
Schrödinger, Erwin|1887-08-12|1961-01-04|Austria|Physics|1933
Dirac, Paul|1902-08-08|1984-10-20|United Kingdom|Physics|1933
Fermi, Enrico|1901-09-29|1954-11-28|Italy|Physics|1938
Feynman, Richard|1918-05-11|1988-02-15|United States|Physics|1965
Röntgen, Wilhelm Conrad|1845-03-27|1923-02-10|Germany|Physics|1901
Becquerel, Henri|1852-12-15|1908-08-25|France|Physics|1903
Curie, Pierre|1859-05-15|1906-04-19|France|Physics|1903
Lorentz, Hendrik|1853-07-18|1928-02-04|Netherlands|Physics|1902
Marconi, Guglielmo|1874-04-25|1937-07-20|Italy|Physics|1909
Pauli, Wolfgang|1900-04-25|1958-12-15|Austria|Physics|1945
Born, Max|1882-12-11|1970-01-05|Germany|Physics|1954
Raman, C. V.|1888-11-07|1970-11-21|India|Physics|1930
Yukawa, Hideki|1907-01-23|1981-09-08|Japan|Physics|1949
Rutherford, Ernest|1871-08-30|1937-10-19|New Zealand|Chemistry|1908
Arrhenius, Svante|1859-02-19|1927-10-02|Sweden|Chemistry|1903
Hahn, Otto|1879-03-08|1968-07-28|Germany|Chemistry|1944
Pauling, Linus|1901-02-28|1994-08-19|United States|Chemistry|1954
Hodgkin, Dorothy|1910-05-12|1994-07-29|United Kingdom|Chemistry|1964
Joliot-Curie, Irène|1897-09-12|1956-03-17|France|Chemistry|1935
Sanger, Frederick|1918-08-13|2013-11-19|United Kingdom|Chemistry|1958
Pavlov, Ivan|1849-09-26|1936-02-27|Russia|Medicine|1904
Ramón y Cajal, Santiago|1852-05-01|1934-10-17|Spain|Medicine|1906
Koch, Robert|1843-12-11|1910-05-27|Germany|Medicine|1905
Fleming, Alexander|1881-08-06|1955-03-11|United Kingdom|Medicine|1945
Crick, Francis|1916-06-08|2004-07-28|United Kingdom|Medicine|1962
Wilkins, Maurice|1916-12-15|2004-10-05|New Zealand|Medicine|1962
McClintock, Barbara|1902-06-16|1992-09-02|United States|Medicine|1983
Newton, Isaac|1643-01-04|1727-03-31|United Kingdom|Physics|
Galilei, Galileo|1564-02-15|1642-01-08|Italy|Astronomy|
Kepler, Johannes|1571-12-27|1630-11-15|Germany|Astronomy|
Copernicus, Nicolaus|1473-02-19|1543-05-24|Poland|Astronomy|
Brahe, Tycho|1546-12-14|1601-10-24|Denmark|Astronomy|
Hubble, Edwin|1889-11-20|1953-09-28|United States|Astronomy|
Darwin, Charles|1809-02-12|1882-04-19|United Kingdom|Biology|
Mendel, Gregor|1822-07-20|1884-01-06|Austria|Biology|
Pasteur, Louis|1822-12-27|1895-09-28|France|Biology|
Linnaeus, Carl|1707-05-23|1778-01-10|Sweden|Biology|
Franklin, Rosalind|1920-07-25|1958-04-16|United Kingdom|Biology|
Lavoisier, Antoine|1743-08-26|1794-05-08|France|Chemistry|
Mendeleev, Dmitri|1834-02-08|1907-02-02|Russia|Chemistry|
Nobel, Alfred|1833-10-21|1896-12-10|Sweden|Chemistry|
Faraday, Michael|1791-09-22|1867-08-25|United Kingdom|Physics|
Maxwell, James Clerk|1831-06-13|1879-11-05|United Kingdom|Physics|
Volta, Alessandro|1745-02-18|1827-03-05|Italy|Physics|
Ampère, André-Marie|1775-01-20|1836-06-10|France|Physics|
Tesla, Nikola|1856-07-10|1943-01-07|United States|Physics|
Meitner, Lise|1878-11-07|1968-10-27|Austria|Physics|
Noether, Emmy|1882-03-23|1935-04-14|Germany|Mathematics|
Gauss, Carl Friedrich|1777-04-30|1855-02-23|Germany|Mathematics|
Euler, Leonhard|1707-04-15|1783-09-18|Switzerland|Mathematics|
Lovelace, Ada|1815-12-10|1852-11-27|United Kingdom|Mathematics|
Turing, Alan|1912-06-23|1954-06-07|United Kingdom|Mathematics|
Gödel, Kurt|1906-04-28|1978-01-14|Austria|Mathematics|
Ramanujan, Srinivasa|1887-12-22|1920-04-26|India|Mathematics|
Poincaré, Henri|1854-04-29|1912-07-17|France|Mathematics|
Descartes, René|1596-03-31|1650-02-11|France|Mathematics|
Pascal, Blaise|1623-06-19|1662-08-19|France|Mathematics|
Hopper, Grace|1906-12-09|1992-01-01|United States|Computing|
""")

UNITS = parse("""
unit|symbol|quantity|named_after
metre|m|length|
kilogram|kg|mass|
second|s|time|
ampere|A|electric current|Ampère, André-Marie
kelvin|K|temperature|Thomson, William
mole|mol|amount of substance|
candela|cd|luminous intensity|
hertz|Hz|frequency|Hertz, Heinrich
newton|N|force|Newton, Isaac
pascal|Pa|pressure|Pascal, Blaise
joule|J|energy|Joule, James Prescott
watt|W|power|Watt, James
coulomb|C|electric charge|Coulomb, Charles-Augustin de
volt|V|electric potential|Volta, Alessandro
farad|F|capacitance|Faraday, Michael
ohm|Ω|electrical resistance|Ohm, Georg Simon
siemens|S|conductance|Siemens, Werner von
weber|Wb|magnetic flux|Weber, Wilhelm
tesla|T|magnetic flux density|Tesla, Nikola
henry|H|inductance|Henry, Joseph
becquerel|Bq|radioactivity|Becquerel, Henri
gray|Gy|absorbed dose|Gray, Louis Harold
sievert|Sv|equivalent dose|Sievert, Rolf
lumen|lm|luminous flux|
lux|lx|illuminance|
katal|kat|catalytic activity|
""")

UNIVERSITIES = parse("""
university|short|city|country|founded
University of Bologna|Bologna|Bologna|Italy|1088
University of Oxford|Oxford|Oxford|United Kingdom|
University of Cambridge|Cambridge|Cambridge|United Kingdom|1209
University of Salamanca|USAL|Salamanca|Spain|1218
University of Padua|Padova|Padua|Italy|1222
University of Coimbra|UC|Coimbra|Portugal|1290
Charles University|UK|Prague|Czechia|1348
Jagiellonian University|UJ|Kraków|Poland|1364
University of Vienna|Uni Wien|Vienna|Austria|1365
Heidelberg University|Heidelberg|Heidelberg|Germany|1386
University of St Andrews|St Andrews|St Andrews|United Kingdom|1413
Leipzig University|Leipzig|Leipzig|Germany|1409
KU Leuven|Leuven|Leuven|Belgium|1425
Uppsala University|UU|Uppsala|Sweden|1477
University of Copenhagen|KU|Copenhagen|Denmark|1479
Leiden University|Leiden|Leiden|Netherlands|1575
University of Edinburgh|Edinburgh|Edinburgh|United Kingdom|1583
Trinity College Dublin|TCD|Dublin|Ireland|1592
Harvard University|Harvard|Cambridge|United States|1636
Utrecht University|UU|Utrecht|Netherlands|1636
Yale University|Yale|New Haven|United States|1701
University of Göttingen|Göttingen|Göttingen|Germany|1737
Princeton University|Princeton|Princeton|United States|1746
Columbia University|Columbia|New York|United States|1754
Humboldt University of Berlin|HU Berlin|Berlin|Germany|1809
University of Oslo|UiO|Oslo|Norway|1811
McGill University|McGill|Montréal|Canada|1821
University of Toronto|U of T|Toronto|Canada|1827
University of Zürich|UZH|Zürich|Switzerland|1833
ETH Zürich|ETH|Zürich|Switzerland|1855
University of Sydney|USyd|Sydney|Australia|1850
University of Melbourne|UniMelb|Melbourne|Australia|1853
Massachusetts Institute of Technology|MIT|Cambridge|United States|1861
Cornell University|Cornell|Ithaca|United States|1865
University of California, Berkeley|UC Berkeley|Berkeley|United States|1868
Technical University of Munich|TUM|Munich|Germany|1868
University of Tokyo|UTokyo|Tokyo|Japan|1877
Stanford University|Stanford|Stanford|United States|1885
California Institute of Technology|Caltech|Pasadena|United States|1891
University of Chicago|UChicago|Chicago|United States|1890
Kyoto University|Kyodai|Kyoto|Japan|1897
Peking University|PKU|Beijing|China|1898
National University of Singapore|NUS|Singapore|Singapore|1905
Imperial College London|Imperial|London|United Kingdom|1907
Tsinghua University|THU|Beijing|China|1911
University of Cape Town|UCT|Cape Town|South Africa|1829
University of São Paulo|USP|São Paulo|Brazil|1934
Seoul National University|SNU|Seoul|South Korea|1946
École Polytechnique|X|Palaiseau|France|1794
""")

PROGRAMMING_LANGUAGES = parse("""
language|year|designer
Fortran|1957|Backus, John
Lisp|1958|McCarthy, John
COBOL|1959|
BASIC|1964|Kemeny, John
Pascal|1970|Wirth, Niklaus
Smalltalk|1972|Kay, Alan
C|1972|Ritchie, Dennis
Prolog|1972|Colmerauer, Alain
ML|1973|Milner, Robin
C++|1985|Stroustrup, Bjarne
Erlang|1986|Armstrong, Joe
Perl|1987|Wall, Larry
Haskell|1990|
Python|1991|van Rossum, Guido
Lua|1993|Ierusalimschy, Roberto
R|1993|Ihaka, Ross
Ruby|1995|Matsumoto, Yukihiro
Java|1995|Gosling, James
JavaScript|1995|Eich, Brendan
PHP|1995|Lerdorf, Rasmus
OCaml|1996|Leroy, Xavier
C#|2000|Hejlsberg, Anders
Scala|2004|Odersky, Martin
F#|2005|Syme, Don
Clojure|2007|Hickey, Rich
Go|2009|Pike, Rob
Kotlin|2011|
Julia|2012|Bezanson, Jeff
TypeScript|2012|Hejlsberg, Anders
Elixir|2012|Valim, José
Swift|2014|Lattner, Chris
Rust|2015|Hoare, Graydon
Zig|2016|Kelley, Andrew
""")

INVENTIONS = parse("""
invention|inventor|year
Hot-air balloon|Montgolfier, Joseph-Michel|1783
Electric battery|Volta, Alessandro|1800
Stethoscope|Laennec, René|1816
Electric motor|Faraday, Michael|1821
Braille|Braille, Louis|1824
Telephone|Bell, Alexander Graham|1876
Phonograph|Edison, Thomas|1877
Motor car|Benz, Carl|1886
Dynamite|Nobel, Alfred|1867
Induction motor|Tesla, Nikola|1888
Cinematograph|Lumière, Louis|1895
X-ray photograph|Röntgen, Wilhelm Conrad|1895
Diesel engine|Diesel, Rudolf|1893
Wireless telegraph|Marconi, Guglielmo|1896
Aeroplane|Wright, Orville|1903
Penicillin|Fleming, Alexander|1928
Nuclear reactor|Fermi, Enrico|1942
Ballpoint pen|Bíró, László|1938
World Wide Web|Berners-Lee, Tim|1989
Rubik's Cube|Rubik, Ernő|1974
""")
