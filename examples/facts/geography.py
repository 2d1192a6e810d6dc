"""Rivers, mountains, lakes, islands, cities, and the parts of some countries.

General geographical knowledge; heights in metres and lengths in kilometres as atlases commonly give
them, US dates of admission from the acts of Congress, time zones from the IANA database.
"""

from facts.sheet import parse

RIVERS = parse("""
river|length_km|mouth|continent
Nile|6650|Mediterranean Sea|Africa
Amazon|6400|Atlantic Ocean|South America
Yangtze|6300|East China Sea|Asia
Yellow River|5464|Bohai Sea|Asia
Congo|4700|Atlantic Ocean|Africa
Mekong|4350|South China Sea|Asia
Niger|4180|Gulf of Guinea|Africa
Lena|4294|Laptev Sea|Asia
Volga|3530|Caspian Sea|Europe
Danube|2850|Black Sea|Europe
Indus|3180|Arabian Sea|Asia
Ganges|2525|Bay of Bengal|Asia
Brahmaputra|2900|Ganges Delta|Asia
Euphrates|2800|Shatt al-Arab|Asia
Mississippi|3770|Gulf of Mexico|North America
Missouri|3767|Mississippi|North America
Saint Lawrence|1197|Gulf of Saint Lawrence|North America
Rio Grande|3051|Gulf of Mexico|North America
Colorado|2330|Gulf of California|North America
Zambezi|2574|Indian Ocean|Africa
Murray|2508|Southern Ocean|Oceania
Orinoco|2140|Atlantic Ocean|South America
Rhine|1233|North Sea|Europe
Elbe|1094|North Sea|Europe
Loire|1006|Bay of Biscay|Europe
Tagus|1007|Atlantic Ocean|Europe
Vistula|1047|Baltic Sea|Europe
Rhône|813|Mediterranean Sea|Europe
Seine|777|English Channel|Europe
Po|652|Adriatic Sea|Europe
Thames|346|North Sea|Europe
Tiber|406|Tyrrhenian Sea|Europe
""")

MOUNTAINS = parse("""
mountain|height_m|range|country|first_ascent
Mount Everest|8849|Himalayas|Nepal|1953-05-29
K2|8611|Karakoram|Pakistan|1954-07-31
Kangchenjunga|8586|Himalayas|Nepal|1955-05-25
Lhotse|8516|Himalayas|Nepal|1956-05-18
Makalu|8485|Himalayas|Nepal|1955-05-15
Cho Oyu|8188|Himalayas|Nepal|1954-10-19
Dhaulagiri|8167|Himalayas|Nepal|1960-05-13
Manaslu|8163|Himalayas|Nepal|1956-05-09
Nanga Parbat|8126|Himalayas|Pakistan|1953-07-03
Annapurna|8091|Himalayas|Nepal|1950-06-03
Gasherbrum I|8080|Karakoram|Pakistan|1958-07-05
Broad Peak|8051|Karakoram|Pakistan|1957-06-09
Gasherbrum II|8035|Karakoram|Pakistan|1956-07-07
Shishapangma|8027|Himalayas|China|1964-05-02
Aconcagua|6961|Andes|Argentina|1897-01-14
Denali|6190|Alaska Range|United States|1913-06-07
Mount Kilimanjaro|5895||Tanzania|1889-10-06
Mount Logan|5959|Saint Elias Mountains|Canada|1925-06-23
Mount Vinson|4892|Sentinel Range|Antarctica|1966-12-18
Mont Blanc|4806|Alps|France|1786-08-08
Matterhorn|4478|Alps|Switzerland|1865-07-14
Jungfrau|4158|Alps|Switzerland|1811-08-03
Eiger|3967|Alps|Switzerland|1858-08-11
Grossglockner|3798|Alps|Austria|1800-07-28
Mount Cook|3724|Southern Alps|New Zealand|1894-12-25
""")

SUMMITS = parse("""
mountain|height_m|country
Mount Fuji|3776|Japan
Mount Elbrus|5642|Russia
Mount Ararat|5137|Turkey
Mount Kenya|5199|Kenya
Mount Whitney|4421|United States
Mount Rainier|4392|United States
Mount Olympus|2918|Greece
Mount Etna|3403|Italy
Mount Vesuvius|1281|Italy
Mount Kosciuszko|2228|Australia
Popocatépetl|5426|Mexico
Cotopaxi|5897|Ecuador
Chimborazo|6263|Ecuador
Teide|3715|Spain
Zugspitze|2962|Germany
Ben Nevis|1345|United Kingdom
Snowdon|1085|United Kingdom
Table Mountain|1085|South Africa
Mauna Kea|4207|United States
""")

LAKES = parse("""
lake|area_km2|countries
Caspian Sea|371000|Azerbaijan, Iran, Kazakhstan, Russia, Turkmenistan
Lake Superior|82100|Canada, United States
Lake Victoria|68870|Kenya, Tanzania, Uganda
Lake Huron|59600|Canada, United States
Lake Michigan|58000|United States
Lake Tanganyika|32600|Burundi, Democratic Republic of the Congo, Tanzania, Zambia
Lake Baikal|31500|Russia
Great Bear Lake|31000|Canada
Lake Malawi|29500|Malawi, Mozambique, Tanzania
Great Slave Lake|27000|Canada
Lake Erie|25700|Canada, United States
Lake Winnipeg|24514|Canada
Lake Ontario|18960|Canada, United States
Lake Ladoga|17700|Russia
Lake Titicaca|8372|Bolivia, Peru
Vänern|5650|Sweden
Lake Geneva|580|France, Switzerland
Lake Constance|536|Austria, Germany, Switzerland
Lake Garda|370|Italy
Lake Balaton|592|Hungary
""")

ISLANDS = parse("""
island|area_km2|belongs_to
Greenland|2166000|Denmark
New Guinea|786000|Indonesia, Papua New Guinea
Borneo|743000|Brunei, Indonesia, Malaysia
Madagascar|587000|Madagascar
Baffin Island|507000|Canada
Sumatra|473000|Indonesia
Honshu|228000|Japan
Great Britain|209000|United Kingdom
Java|129000|Indonesia
Cuba|105000|Cuba
Iceland|103000|Iceland
Ireland|84000|Ireland, United Kingdom
Hokkaido|78000|Japan
Hispaniola|76000|Dominican Republic, Haiti
Tasmania|65000|Australia
Sri Lanka|65600|Sri Lanka
Sicily|25700|Italy
Sardinia|24000|Italy
Cyprus|9250|Cyprus
Corsica|8700|France
Crete|8340|Greece
Mallorca|3640|Spain
""")

CITIES = parse("""
city|country|latitude|longitude|time_zone
Amsterdam|Netherlands|52.4|4.9|Europe/Amsterdam
Athens|Greece|38.0|23.7|Europe/Athens
Auckland|New Zealand|-36.8|174.8|Pacific/Auckland
Bangkok|Thailand|13.8|100.5|Asia/Bangkok
Barcelona|Spain|41.4|2.2|Europe/Madrid
Beijing|China|39.9|116.4|Asia/Shanghai
Berlin|Germany|52.5|13.4|Europe/Berlin
Bogotá|Colombia|4.7|-74.1|America/Bogota
Brasília|Brazil|-15.8|-47.9|America/Sao_Paulo
Brussels|Belgium|50.8|4.4|Europe/Brussels
Budapest|Hungary|47.5|19.0|Europe/Budapest
Buenos Aires|Argentina|-34.6|-58.4|America/Argentina/Buenos_Aires
Cairo|Egypt|30.0|31.2|Africa/Cairo
Cape Town|South Africa|-33.9|18.4|Africa/Johannesburg
Chicago|United States|41.9|-87.6|America/Chicago
Cologne|Germany|50.9|7.0|Europe/Berlin
Copenhagen|Denmark|55.7|12.6|Europe/Copenhagen
Delhi|India|28.6|77.2|Asia/Kolkata
Dublin|Ireland|53.3|-6.3|Europe/Dublin
Düsseldorf|Germany|51.2|6.8|Europe/Berlin
Florence|Italy|43.8|11.3|Europe/Rome
Geneva|Switzerland|46.2|6.1|Europe/Zurich
Gothenburg|Sweden|57.7|12.0|Europe/Stockholm
Hamburg|Germany|53.6|10.0|Europe/Berlin
Helsinki|Finland|60.2|24.9|Europe/Helsinki
Hong Kong|China|22.3|114.2|Asia/Hong_Kong
Istanbul|Turkey|41.0|29.0|Europe/Istanbul
Jakarta|Indonesia|-6.2|106.8|Asia/Jakarta
Kyiv|Ukraine|50.5|30.5|Europe/Kyiv
Kraków|Poland|50.1|19.9|Europe/Warsaw
Lagos|Nigeria|6.5|3.4|Africa/Lagos
Lima|Peru|-12.0|-77.0|America/Lima
Lisbon|Portugal|38.7|-9.1|Europe/Lisbon
London|United Kingdom|51.5|-0.1|Europe/London
Los Angeles|United States|34.1|-118.2|America/Los_Angeles
Madrid|Spain|40.4|-3.7|Europe/Madrid
Málaga|Spain|36.7|-4.4|Europe/Madrid
Melbourne|Australia|-37.8|145.0|Australia/Melbourne
Mexico City|Mexico|19.4|-99.1|America/Mexico_City
Milan|Italy|45.5|9.2|Europe/Rome
Montréal|Canada|45.5|-73.6|America/Toronto
Moscow|Russia|55.8|37.6|Europe/Moscow
Mumbai|India|19.1|72.9|Asia/Kolkata
Munich|Germany|48.1|11.6|Europe/Berlin
Nairobi|Kenya|-1.3|36.8|Africa/Nairobi
Naples|Italy|40.9|14.3|Europe/Rome
New York|United States|40.7|-74.0|America/New_York
Oslo|Norway|59.9|10.8|Europe/Oslo
Paris|France|48.9|2.4|Europe/Paris
Porto|Portugal|41.2|-8.6|Europe/Lisbon
Prague|Czechia|50.1|14.4|Europe/Prague
Québec|Canada|46.8|-71.2|America/Toronto
Reykjavík|Iceland|64.1|-21.9|Atlantic/Reykjavik
Rio de Janeiro|Brazil|-22.9|-43.2|America/Sao_Paulo
Rome|Italy|41.9|12.5|Europe/Rome
Saint Petersburg|Russia|59.9|30.3|Europe/Moscow
San Francisco|United States|37.8|-122.4|America/Los_Angeles
San José|Costa Rica|9.9|-84.1|America/Costa_Rica
Santiago|Chile|-33.4|-70.7|America/Santiago
São Paulo|Brazil|-23.6|-46.6|America/Sao_Paulo
Seoul|South Korea|37.6|127.0|Asia/Seoul
Seville|Spain|37.4|-6.0|Europe/Madrid
Shanghai|China|31.2|121.5|Asia/Shanghai
Singapore|Singapore|1.3|103.8|Asia/Singapore
Stockholm|Sweden|59.3|18.1|Europe/Stockholm
Sydney|Australia|-33.9|151.2|Australia/Sydney
Taipei|Taiwan|25.0|121.6|Asia/Taipei
Tokyo|Japan|35.7|139.7|Asia/Tokyo
Toronto|Canada|43.7|-79.4|America/Toronto
Valparaíso|Chile|-33.0|-71.6|America/Santiago
Vancouver|Canada|49.3|-123.1|America/Vancouver
Venice|Italy|45.4|12.3|Europe/Rome
Vienna|Austria|48.2|16.4|Europe/Vienna
Warsaw|Poland|52.2|21.0|Europe/Warsaw
Zürich|Switzerland|47.4|8.5|Europe/Zurich
""")

RENAMED_CITIES = parse("""
city|former_name|renamed
Mumbai|Bombay|1995
Chennai|Madras|1996
Kolkata|Calcutta|2001
Istanbul|Constantinople|1930
Ho Chi Minh City|Saigon|1976
Oslo|Kristiania|1925
Tallinn|Reval|1918
Volgograd|Stalingrad|1961
Chemnitz|Karl-Marx-Stadt|1990
Kinshasa|Léopoldville|1966
Harare|Salisbury|1982
Maputo|Lourenço Marques|1976
Jakarta|Batavia|1942
New York|New Amsterdam|1664
Toronto|York|1834
Gdańsk|Danzig|1945
Wrocław|Breslau|1945
Kaliningrad|Königsberg|1946
N'Djamena|Fort-Lamy|1973
Saint Petersburg|Leningrad|1991
""")

US_STATES = parse("""
order|state|code|capital|admitted
1|Delaware|DE|Dover|1787-12-07
2|Pennsylvania|PA|Harrisburg|1787-12-12
3|New Jersey|NJ|Trenton|1787-12-18
4|Georgia|GA|Atlanta|1788-01-02
5|Connecticut|CT|Hartford|1788-01-09
6|Massachusetts|MA|Boston|1788-02-06
7|Maryland|MD|Annapolis|1788-04-28
8|South Carolina|SC|Columbia|1788-05-23
9|New Hampshire|NH|Concord|1788-06-21
10|Virginia|VA|Richmond|1788-06-25
11|New York|NY|Albany|1788-07-26
12|North Carolina|NC|Raleigh|1789-11-21
13|Rhode Island|RI|Providence|1790-05-29
14|Vermont|VT|Montpelier|1791-03-04
15|Kentucky|KY|Frankfort|1792-06-01
16|Tennessee|TN|Nashville|1796-06-01
17|Ohio|OH|Columbus|1803-03-01
18|Louisiana|LA|Baton Rouge|1812-04-30
19|Indiana|IN|Indianapolis|1816-12-11
20|Mississippi|MS|Jackson|1817-12-10
21|Illinois|IL|Springfield|1818-12-03
22|Alabama|AL|Montgomery|1819-12-14
23|Maine|ME|Augusta|1820-03-15
24|Missouri|MO|Jefferson City|1821-08-10
25|Arkansas|AR|Little Rock|1836-06-15
26|Michigan|MI|Lansing|1837-01-26
27|Florida|FL|Tallahassee|1845-03-03
28|Texas|TX|Austin|1845-12-29
29|Iowa|IA|Des Moines|1846-12-28
30|Wisconsin|WI|Madison|1848-05-29
31|California|CA|Sacramento|1850-09-09
32|Minnesota|MN|Saint Paul|1858-05-11
33|Oregon|OR|Salem|1859-02-14
34|Kansas|KS|Topeka|1861-01-29
35|West Virginia|WV|Charleston|1863-06-20
36|Nevada|NV|Carson City|1864-10-31
37|Nebraska|NE|Lincoln|1867-03-01
38|Colorado|CO|Denver|1876-08-01
39|North Dakota|ND|Bismarck|1889-11-02
40|South Dakota|SD|Pierre|1889-11-02
41|Montana|MT|Helena|1889-11-08
42|Washington|WA|Olympia|1889-11-11
43|Idaho|ID|Boise|1890-07-03
44|Wyoming|WY|Cheyenne|1890-07-10
45|Utah|UT|Salt Lake City|1896-01-04
46|Oklahoma|OK|Oklahoma City|1907-11-16
47|New Mexico|NM|Santa Fe|1912-01-06
48|Arizona|AZ|Phoenix|1912-02-14
49|Alaska|AK|Juneau|1959-01-03
50|Hawaii|HI|Honolulu|1959-08-21
""")

GERMAN_STATES = parse("""
state|german_name|capital
Baden-Württemberg|Baden-Württemberg|Stuttgart
Bavaria|Bayern|Munich
Berlin|Berlin|Berlin
Brandenburg|Brandenburg|Potsdam
Bremen|Bremen|Bremen
Hamburg|Hamburg|Hamburg
Hesse|Hessen|Wiesbaden
Lower Saxony|Niedersachsen|Hanover
Mecklenburg-Western Pomerania|Mecklenburg-Vorpommern|Schwerin
North Rhine-Westphalia|Nordrhein-Westfalen|Düsseldorf
Rhineland-Palatinate|Rheinland-Pfalz|Mainz
Saarland|Saarland|Saarbrücken
Saxony|Sachsen|Dresden
Saxony-Anhalt|Sachsen-Anhalt|Magdeburg
Schleswig-Holstein|Schleswig-Holstein|Kiel
Thuringia|Thüringen|Erfurt
""")

BRAZILIAN_STATES = parse("""
state|code|capital
Acre|AC|Rio Branco
Alagoas|AL|Maceió
Amapá|AP|Macapá
Amazonas|AM|Manaus
Bahia|BA|Salvador
Ceará|CE|Fortaleza
Espírito Santo|ES|Vitória
Goiás|GO|Goiânia
Maranhão|MA|São Luís
Mato Grosso|MT|Cuiabá
Mato Grosso do Sul|MS|Campo Grande
Minas Gerais|MG|Belo Horizonte
Pará|PA|Belém
Paraíba|PB|João Pessoa
Paraná|PR|Curitiba
Pernambuco|PE|Recife
Piauí|PI|Teresina
Rio de Janeiro|RJ|Rio de Janeiro
Rio Grande do Norte|RN|Natal
Rio Grande do Sul|RS|Porto Alegre
Rondônia|RO|Porto Velho
Roraima|RR|Boa Vista
Santa Catarina|SC|Florianópolis
São Paulo|SP|São Paulo
Sergipe|SE|Aracaju
Tocantins|TO|Palmas
""")

PROVINCES_OF_CANADA = parse("""
province|code|capital|joined
Ontario|ON|Toronto|1 July 1867
Quebec|QC|Québec|1 July 1867
Nova Scotia|NS|Halifax|1 July 1867
New Brunswick|NB|Fredericton|1 July 1867
Manitoba|MB|Winnipeg|15 July 1870
Northwest Territories|NT|Yellowknife|15 July 1870
British Columbia|BC|Victoria|20 July 1871
Prince Edward Island|PE|Charlottetown|1 July 1873
Yukon|YT|Whitehorse|13 June 1898
Saskatchewan|SK|Regina|1 September 1905
Alberta|AB|Edmonton|1 September 1905
Newfoundland and Labrador|NL|St. John's|31 March 1949
Nunavut|NU|Iqaluit|1 April 1999
""")
