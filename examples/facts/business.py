"""Companies, exchanges, airlines, airports, brands and central banks.

Headquarters and years of foundation are those that the companies give, tickers those of the
exchanges, airline and airport codes those of IATA, market codes those of ISO 10383.
"""

from facts.sheet import parse

COMPANIES = parse("""
company|short|city|country|founded|sector
Siemens AG|Siemens|Munich|Germany|1847|Industry
SAP SE|SAP|Walldorf|Germany|1972|Software
Volkswagen AG|Volkswagen|Wolfsburg|Germany|1937|Cars
BMW AG|BMW|Munich|Germany|1916|Cars
Robert Bosch GmbH|Bosch|Gerlingen|Germany|1886|Industry
BASF SE|BASF|Ludwigshafen|Germany|1865|Chemicals
Bayer AG|Bayer|Leverkusen|Germany|1863|Chemicals
Allianz SE|Allianz|Munich|Germany|1890|Insurance
adidas AG|Adidas|Herzogenaurach|Germany|1949|Clothing
Nestlé S.A.|Nestlé|Vevey|Switzerland|1866|Food
Roche Holding AG|Roche|Basel|Switzerland|1896|Pharmaceuticals
Novartis AG|Novartis|Basel|Switzerland|1996|Pharmaceuticals
UBS Group AG|UBS|Zürich|Switzerland|1862|Banking
ABB Ltd|ABB|Zürich|Switzerland|1988|Industry
TotalEnergies SE|TotalEnergies|Courbevoie|France|1924|Energy
L'Oréal S.A.|L'Oréal|Clichy|France|1909|Cosmetics
Danone S.A.|Danone|Paris|France|1919|Food
Renault S.A.|Renault|Boulogne-Billancourt|France|1899|Cars
Compagnie Générale des Établissements Michelin|Michelin|Clermont-Ferrand|France|1889|Tyres
Shell plc|Shell|London|United Kingdom|1907|Energy
BP p.l.c.|BP|London|United Kingdom|1909|Energy
Unilever PLC|Unilever|London|United Kingdom|1929|Consumer goods
AstraZeneca PLC|AstraZeneca|Cambridge|United Kingdom|1999|Pharmaceuticals
HSBC Holdings plc|HSBC|London|United Kingdom|1865|Banking
ASML Holding N.V.|ASML|Veldhoven|Netherlands|1984|Semiconductors
Koninklijke Philips N.V.|Philips|Amsterdam|Netherlands|1891|Electronics
Heineken N.V.|Heineken|Amsterdam|Netherlands|1864|Beverages
Ferrari N.V.|Ferrari|Maranello|Italy|1939|Cars
Eni S.p.A.|Eni|Rome|Italy|1953|Energy
Banco Santander, S.A.|Santander|Santander|Spain|1857|Banking
Telefónica, S.A.|Telefónica|Madrid|Spain|1924|Telecommunications
Inditex, S.A.|Inditex|Arteixo|Spain|1985|Clothing
Volvo AB|Volvo|Gothenburg|Sweden|1927|Lorries
Telefonaktiebolaget LM Ericsson|Ericsson|Stockholm|Sweden|1876|Telecommunications
H & M Hennes & Mauritz AB|H&M|Stockholm|Sweden|1947|Clothing
Nokia Oyj|Nokia|Espoo|Finland|1865|Telecommunications
Novo Nordisk A/S|Novo Nordisk|Bagsværd|Denmark|1923|Pharmaceuticals
A.P. Møller - Mærsk A/S|Maersk|Copenhagen|Denmark|1904|Shipping
LEGO A/S|LEGO|Billund|Denmark|1932|Toys
Equinor ASA|Equinor|Stavanger|Norway|1972|Energy
Apple Inc.|Apple|Cupertino|United States|1976|Electronics
Microsoft Corporation|Microsoft|Redmond|United States|1975|Software
Alphabet Inc.|Alphabet|Mountain View|United States|2015|Software
Amazon.com, Inc.|Amazon|Seattle|United States|1994|Retail
Meta Platforms, Inc.|Meta|Menlo Park|United States|2004|Software
NVIDIA Corporation|Nvidia|Santa Clara|United States|1993|Semiconductors
Intel Corporation|Intel|Santa Clara|United States|1968|Semiconductors
International Business Machines Corporation|IBM|Armonk|United States|1911|Software
The Boeing Company|Boeing|Arlington|United States|1916|Aircraft
Ford Motor Company|Ford|Dearborn|United States|1903|Cars
The Coca-Cola Company|Coca-Cola|Atlanta|United States|1892|Beverages
PepsiCo, Inc.|PepsiCo|Purchase|United States|1965|Beverages
McDonald's Corporation|McDonald's|Chicago|United States|1940|Restaurants
Nike, Inc.|Nike|Beaverton|United States|1964|Clothing
Walmart Inc.|Walmart|Bentonville|United States|1962|Retail
The Walt Disney Company|Disney|Burbank|United States|1923|Media
Toyota Motor Corporation|Toyota|Toyota|Japan|1937|Cars
Honda Motor Co., Ltd.|Honda|Tokyo|Japan|1948|Cars
Sony Group Corporation|Sony|Tokyo|Japan|1946|Electronics
Nintendo Co., Ltd.|Nintendo|Kyoto|Japan|1889|Games
Samsung Electronics Co., Ltd.|Samsung|Suwon|South Korea|1969|Electronics
Hyundai Motor Company|Hyundai|Seoul|South Korea|1967|Cars
Taiwan Semiconductor Manufacturing Company Limited|TSMC|Hsinchu|Taiwan|1987|Semiconductors
Huawei Technologies Co., Ltd.|Huawei|Shenzhen|China|1987|Telecommunications
Alibaba Group Holding Limited|Alibaba|Hangzhou|China|1999|Retail
Tata Consultancy Services Limited|TCS|Mumbai|India|1968|Software
Infosys Limited|Infosys|Bengaluru|India|1981|Software
Petróleo Brasileiro S.A.|Petrobras|Rio de Janeiro|Brazil|1953|Energy
Embraer S.A.|Embraer|São José dos Campos|Brazil|1969|Aircraft
BHP Group Limited|BHP|Melbourne|Australia|1885|Mining
""")

LISTINGS = parse("""
security|ticker|market
Siemens|SIE|Frankfurt
SAP|SAP|Frankfurt
Volkswagen|VOW3|Frankfurt
BMW|BMW|Frankfurt
BASF|BAS|Frankfurt
Bayer|BAYN|Frankfurt
Allianz|ALV|Frankfurt
Adidas|ADS|Frankfurt
Nestle|NESN|Zurich
Roche|ROG|Zurich
Novartis|NOVN|Zurich
UBS|UBSG|Zurich
TotalEnergies|TTE|Paris
L'Oreal|OR|Paris
Danone|BN|Paris
Renault|RNO|Paris
Michelin|ML|Paris
Shell|SHEL|London
BP|BP|London
Unilever|ULVR|London
AstraZeneca|AZN|London
HSBC|HSBA|London
ASML|ASML|Amsterdam
Philips|PHIA|Amsterdam
Heineken|HEIA|Amsterdam
Ferrari|RACE|Milan
Eni|ENI|Milan
Santander|SAN|Madrid
Telefonica|TEF|Madrid
Apple|AAPL|Nasdaq
Microsoft|MSFT|Nasdaq
Alphabet|GOOGL|Nasdaq
Amazon|AMZN|Nasdaq
Nvidia|NVDA|Nasdaq
Intel|INTC|Nasdaq
IBM|IBM|New York
Boeing|BA|New York
Ford|F|New York
Coca Cola|KO|New York
McDonalds|MCD|New York
Nike|NKE|New York
Disney|DIS|New York
Toyota|7203|Tokyo
Honda|7267|Tokyo
Sony|6758|Tokyo
Nintendo|7974|Tokyo
""")

EXCHANGES = parse("""
exchange|market_code|city|country
New York Stock Exchange|XNYS|New York|United States
Nasdaq|XNAS|New York|United States
London Stock Exchange|XLON|London|United Kingdom
Tokyo Stock Exchange|XTKS|Tokyo|Japan
Shanghai Stock Exchange|XSHG|Shanghai|China
Shenzhen Stock Exchange|XSHE|Shenzhen|China
Hong Kong Stock Exchange|XHKG|Hong Kong|China
Euronext Paris|XPAR|Paris|France
Euronext Amsterdam|XAMS|Amsterdam|Netherlands
Euronext Brussels|XBRU|Brussels|Belgium
Euronext Lisbon|XLIS|Lisbon|Portugal
Frankfurt Stock Exchange|XFRA|Frankfurt|Germany
SIX Swiss Exchange|XSWX|Zürich|Switzerland
Toronto Stock Exchange|XTSE|Toronto|Canada
Bombay Stock Exchange|XBOM|Mumbai|India
National Stock Exchange of India|XNSE|Mumbai|India
Korea Exchange|XKRX|Busan|South Korea
Taiwan Stock Exchange|XTAI|Taipei|Taiwan
Australian Securities Exchange|XASX|Sydney|Australia
Johannesburg Stock Exchange|XJSE|Johannesburg|South Africa
Singapore Exchange|XSES|Singapore|Singapore
Madrid Stock Exchange|XMAD|Madrid|Spain
Warsaw Stock Exchange|XWAR|Warsaw|Poland
Oslo Stock Exchange|XOSL|Oslo|Norway
Nasdaq Stockholm|XSTO|Stockholm|Sweden
""")

AIRLINES = parse("""
airline|iata|base|country
Lufthansa|LH|Frankfurt|Germany
Air France|AF|Paris|France
British Airways|BA|London|United Kingdom
KLM|KL|Amsterdam|Netherlands
SWISS|LX|Zürich|Switzerland
Austrian Airlines|OS|Vienna|Austria
Iberia|IB|Madrid|Spain
TAP Air Portugal|TP|Lisbon|Portugal
SAS|SK|Stockholm|Sweden
Finnair|AY|Helsinki|Finland
LOT Polish Airlines|LO|Warsaw|Poland
Aer Lingus|EI|Dublin|Ireland
Icelandair|FI|Reykjavík|Iceland
Ryanair|FR|Dublin|Ireland
easyJet|U2|London|United Kingdom
Turkish Airlines|TK|Istanbul|Turkey
Emirates|EK|Dubai|United Arab Emirates
Qatar Airways|QR|Doha|Qatar
Singapore Airlines|SQ|Singapore|Singapore
Cathay Pacific|CX|Hong Kong|China
Japan Airlines|JL|Tokyo|Japan
All Nippon Airways|NH|Tokyo|Japan
Korean Air|KE|Seoul|South Korea
Qantas|QF|Sydney|Australia
Air New Zealand|NZ|Auckland|New Zealand
Delta Air Lines|DL|Atlanta|United States
United Airlines|UA|Chicago|United States
American Airlines|AA|Dallas|United States
Southwest Airlines|WN|Dallas|United States
Air Canada|AC|Montréal|Canada
Aeroméxico|AM|Mexico City|Mexico
Avianca|AV|Bogotá|Colombia
Ethiopian Airlines|ET|Addis Ababa|Ethiopia
Kenya Airways|KQ|Nairobi|Kenya
EgyptAir|MS|Cairo|Egypt
""")

AIRPORTS = parse("""
code|airport|city|country
AMS|Amsterdam Airport Schiphol|Amsterdam|Netherlands
ARN|Stockholm Arlanda Airport|Stockholm|Sweden
ATH|Athens International Airport|Athens|Greece
ATL|Hartsfield-Jackson Atlanta International Airport|Atlanta|United States
AKL|Auckland Airport|Auckland|New Zealand
BCN|Josep Tarradellas Barcelona-El Prat Airport|Barcelona|Spain
BER|Berlin Brandenburg Airport|Berlin|Germany
BKK|Suvarnabhumi Airport|Bangkok|Thailand
BOG|El Dorado International Airport|Bogotá|Colombia
BOM|Chhatrapati Shivaji Maharaj International Airport|Mumbai|India
BOS|Logan International Airport|Boston|United States
BRU|Brussels Airport|Brussels|Belgium
BUD|Budapest Ferenc Liszt International Airport|Budapest|Hungary
CAI|Cairo International Airport|Cairo|Egypt
CDG|Charles de Gaulle Airport|Paris|France
CGN|Cologne Bonn Airport|Cologne|Germany
CPH|Copenhagen Airport|Copenhagen|Denmark
CPT|Cape Town International Airport|Cape Town|South Africa
DEL|Indira Gandhi International Airport|Delhi|India
DEN|Denver International Airport|Denver|United States
DFW|Dallas Fort Worth International Airport|Dallas|United States
DOH|Hamad International Airport|Doha|Qatar
DUB|Dublin Airport|Dublin|Ireland
DUS|Düsseldorf Airport|Düsseldorf|Germany
DXB|Dubai International Airport|Dubai|United Arab Emirates
EZE|Ministro Pistarini International Airport|Buenos Aires|Argentina
FCO|Leonardo da Vinci-Fiumicino Airport|Rome|Italy
FRA|Frankfurt Airport|Frankfurt|Germany
GIG|Galeão International Airport|Rio de Janeiro|Brazil
GRU|Guarulhos International Airport|São Paulo|Brazil
GVA|Geneva Airport|Geneva|Switzerland
HAM|Hamburg Airport|Hamburg|Germany
HEL|Helsinki Airport|Helsinki|Finland
HKG|Hong Kong International Airport|Hong Kong|China
HND|Haneda Airport|Tokyo|Japan
ICN|Incheon International Airport|Seoul|South Korea
IST|Istanbul Airport|Istanbul|Turkey
JFK|John F. Kennedy International Airport|New York|United States
JNB|O. R. Tambo International Airport|Johannesburg|South Africa
KEF|Keflavík International Airport|Reykjavík|Iceland
KRK|John Paul II International Airport|Kraków|Poland
KUL|Kuala Lumpur International Airport|Kuala Lumpur|Malaysia
LAX|Los Angeles International Airport|Los Angeles|United States
LED|Pulkovo Airport|Saint Petersburg|Russia
LGW|Gatwick Airport|London|United Kingdom
LHR|Heathrow Airport|London|United Kingdom
LIM|Jorge Chávez International Airport|Lima|Peru
LIS|Humberto Delgado Airport|Lisbon|Portugal
MAD|Adolfo Suárez Madrid-Barajas Airport|Madrid|Spain
MEL|Melbourne Airport|Melbourne|Australia
MEX|Benito Juárez International Airport|Mexico City|Mexico
MUC|Munich Airport|Munich|Germany
MXP|Malpensa Airport|Milan|Italy
NBO|Jomo Kenyatta International Airport|Nairobi|Kenya
NRT|Narita International Airport|Tokyo|Japan
ORD|O'Hare International Airport|Chicago|United States
ORY|Orly Airport|Paris|France
OSL|Oslo Airport Gardermoen|Oslo|Norway
PEK|Beijing Capital International Airport|Beijing|China
PRG|Václav Havel Airport Prague|Prague|Czechia
PVG|Pudong International Airport|Shanghai|China
SCL|Arturo Merino Benítez International Airport|Santiago|Chile
SEA|Seattle-Tacoma International Airport|Seattle|United States
SFO|San Francisco International Airport|San Francisco|United States
SIN|Changi Airport|Singapore|Singapore
STN|Stansted Airport|London|United Kingdom
SYD|Kingsford Smith Airport|Sydney|Australia
TPE|Taoyuan International Airport|Taipei|Taiwan
VCE|Marco Polo Airport|Venice|Italy
VIE|Vienna Airport|Vienna|Austria
WAW|Warsaw Chopin Airport|Warsaw|Poland
YUL|Trudeau International Airport|Montréal|Canada
YVR|Vancouver International Airport|Vancouver|Canada
YYZ|Pearson International Airport|Toronto|Canada
ZRH|Zürich Airport|Zürich|Switzerland
""")

BRANDS = parse("""
brand|owner|product
Nescafé|Nestlé|Coffee
KitKat|Nestlé|Chocolate
Maggi|Nestlé|Soups
Perrier|Nestlé|Water
Dove|Unilever|Soap
Knorr|Unilever|Soups
Hellmann's|Unilever|Mayonnaise
Fanta|Coca-Cola|Soft drink
Sprite|Coca-Cola|Soft drink
Gatorade|PepsiCo|Soft drink
Lay's|PepsiCo|Crisps
Mini|BMW|Cars
Rolls-Royce Motor Cars|BMW|Cars
Audi|Volkswagen|Cars
Porsche|Volkswagen|Cars
Škoda|Volkswagen|Cars
Bentley|Volkswagen|Cars
Dacia|Renault|Cars
Lexus|Toyota|Cars
Acura|Honda|Cars
PlayStation|Sony|Games
Switch|Nintendo|Games
Xbox|Microsoft|Games
LinkedIn|Microsoft|Social network
YouTube|Alphabet|Video
Instagram|Meta|Social network
WhatsApp|Meta|Messages
Zara|Inditex|Clothing
Converse|Nike|Shoes
Evian|Danone|Water
Garnier|L'Oréal|Cosmetics
Maybelline|L'Oréal|Cosmetics
""")

CENTRAL_BANKS = parse("""
bank|city|country|founded
Bank of England|London|United Kingdom|1694
Sveriges Riksbank|Stockholm|Sweden|1668
Banque de France|Paris|France|1800
Deutsche Bundesbank|Frankfurt|Germany|1957
European Central Bank|Frankfurt|Germany|1998
Federal Reserve System|Washington, D.C.|United States|1913
Swiss National Bank|Bern|Switzerland|1907
Bank of Japan|Tokyo|Japan|1882
People's Bank of China|Beijing|China|1948
Reserve Bank of India|Mumbai|India|1935
Bank of Canada|Ottawa|Canada|1934
Reserve Bank of Australia|Sydney|Australia|1960
Norges Bank|Oslo|Norway|1816
Danmarks Nationalbank|Copenhagen|Denmark|1818
De Nederlandsche Bank|Amsterdam|Netherlands|1814
Banca d'Italia|Rome|Italy|1893
Banco de España|Madrid|Spain|1782
Banco de Portugal|Lisbon|Portugal|1846
Bank of Korea|Seoul|South Korea|1950
Banco Central do Brasil|Brasília|Brazil|1964
Banco de México|Mexico City|Mexico|1925
South African Reserve Bank|Pretoria|South Africa|1921
Czech National Bank|Prague|Czechia|1993
Bank of Israel|Jerusalem|Israel|1954
""")

METROS = parse("""
system|city|country|opened
London Underground|London|United Kingdom|1863
Budapest Metro|Budapest|Hungary|1896
Glasgow Subway|Glasgow|United Kingdom|1896
Paris Métro|Paris|France|1900
Berlin U-Bahn|Berlin|Germany|1902
New York City Subway|New York|United States|1904
Hamburg U-Bahn|Hamburg|Germany|1912
Subte|Buenos Aires|Argentina|1913
Madrid Metro|Madrid|Spain|1919
Barcelona Metro|Barcelona|Spain|1924
Tokyo Metro|Tokyo|Japan|1927
Osaka Metro|Osaka|Japan|1933
Moscow Metro|Moscow|Russia|1935
Stockholm Metro|Stockholm|Sweden|1950
Toronto Subway|Toronto|Canada|1954
Rome Metro|Rome|Italy|1955
Saint Petersburg Metro|Saint Petersburg|Russia|1955
Lisbon Metro|Lisbon|Portugal|1959
Kyiv Metro|Kyiv|Ukraine|1960
Milan Metro|Milan|Italy|1964
Oslo Metro|Oslo|Norway|1966
Montréal Metro|Montréal|Canada|1966
Mexico City Metro|Mexico City|Mexico|1969
Beijing Subway|Beijing|China|1971
Munich U-Bahn|Munich|Germany|1971
BART|San Francisco|United States|1972
Prague Metro|Prague|Czechia|1974
São Paulo Metro|São Paulo|Brazil|1974
Seoul Metro|Seoul|South Korea|1974
Santiago Metro|Santiago|Chile|1975
Brussels Metro|Brussels|Belgium|1976
Washington Metro|Washington, D.C.|United States|1976
Amsterdam Metro|Amsterdam|Netherlands|1977
Vienna U-Bahn|Vienna|Austria|1978
MTR|Hong Kong|China|1979
Helsinki Metro|Helsinki|Finland|1982
Cairo Metro|Cairo|Egypt|1987
Singapore MRT|Singapore|Singapore|1987
Shanghai Metro|Shanghai|China|1993
Warsaw Metro|Warsaw|Poland|1995
Bangkok BTS|Bangkok|Thailand|1999
Copenhagen Metro|Copenhagen|Denmark|2002
Delhi Metro|Delhi|India|2002
""")
