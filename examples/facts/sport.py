"""Olympic Games, football, motor racing and marathons.

Games and venues follow the International Olympic Committee, finals FIFA, titles the FIA; clubs and
grounds are general knowledge.
"""

from facts.sheet import parse

SUMMER_GAMES = parse("""
year|city|country|opening
1896|Athens|Greece|1896-04-06
1900|Paris|France|1900-05-14
1904|St. Louis|United States|1904-07-01
1908|London|United Kingdom|1908-04-27
1912|Stockholm|Sweden|1912-05-05
1920|Antwerp|Belgium|1920-04-20
1924|Paris|France|1924-05-04
1928|Amsterdam|Netherlands|1928-05-17
1932|Los Angeles|United States|1932-07-30
1936|Berlin|Germany|1936-08-01
1948|London|United Kingdom|1948-07-29
1952|Helsinki|Finland|1952-07-19
1956|Melbourne|Australia|1956-11-22
1960|Rome|Italy|1960-08-25
1964|Tokyo|Japan|1964-10-10
1968|Mexico City|Mexico|1968-10-12
1972|Munich|West Germany|1972-08-26
1976|Montréal|Canada|1976-07-17
1980|Moscow|Soviet Union|1980-07-19
1984|Los Angeles|United States|1984-07-28
1988|Seoul|South Korea|1988-09-17
1992|Barcelona|Spain|1992-07-25
1996|Atlanta|United States|1996-07-19
2000|Sydney|Australia|2000-09-15
2004|Athens|Greece|2004-08-13
2008|Beijing|China|2008-08-08
2012|London|United Kingdom|2012-07-27
2016|Rio de Janeiro|Brazil|2016-08-05
2020|Tokyo|Japan|2021-07-23
2024|Paris|France|2024-07-26
""")

WINTER_GAMES = parse("""
year|city|country
1924|Chamonix|France
1928|St. Moritz|Switzerland
1932|Lake Placid|United States
1936|Garmisch-Partenkirchen|Germany
1948|St. Moritz|Switzerland
1952|Oslo|Norway
1956|Cortina d'Ampezzo|Italy
1960|Squaw Valley|United States
1964|Innsbruck|Austria
1968|Grenoble|France
1972|Sapporo|Japan
1976|Innsbruck|Austria
1980|Lake Placid|United States
1984|Sarajevo|Yugoslavia
1988|Calgary|Canada
1992|Albertville|France
1994|Lillehammer|Norway
1998|Nagano|Japan
2002|Salt Lake City|United States
2006|Turin|Italy
2010|Vancouver|Canada
2014|Sochi|Russia
2018|PyeongChang|South Korea
2022|Beijing|China
""")

WORLD_CUPS = parse("""
year|host|winner|runner_up
1930|Uruguay|Uruguay|Argentina
1934|Italy|Italy|Czechoslovakia
1938|France|Italy|Hungary
1954|Switzerland|West Germany|Hungary
1958|Sweden|Brazil|Sweden
1962|Chile|Brazil|Czechoslovakia
1966|England|England|West Germany
1970|Mexico|Brazil|Italy
1974|West Germany|West Germany|Netherlands
1978|Argentina|Argentina|Netherlands
1982|Spain|Italy|West Germany
1986|Mexico|Argentina|West Germany
1990|Italy|West Germany|Argentina
1994|United States|Brazil|Italy
1998|France|France|Brazil
2002|South Korea and Japan|Brazil|Germany
2006|Germany|Italy|France
2010|South Africa|Spain|Netherlands
2014|Brazil|Germany|Argentina
2018|Russia|France|Croatia
2022|Qatar|Argentina|France
""")

CLUBS = parse("""
club|city|country|founded|ground
FC Barcelona|Barcelona|Spain|1899|Camp Nou
Real Madrid|Madrid|Spain|1902|Santiago Bernabéu
Atlético Madrid|Madrid|Spain|1903|Metropolitano
Sevilla FC|Seville|Spain|1890|Ramón Sánchez-Pizjuán
Athletic Club|Bilbao|Spain|1898|San Mamés
Manchester United|Manchester|United Kingdom|1878|Old Trafford
Manchester City|Manchester|United Kingdom|1880|Etihad Stadium
Liverpool FC|Liverpool|United Kingdom|1892|Anfield
Arsenal FC|London|United Kingdom|1886|Emirates Stadium
Chelsea FC|London|United Kingdom|1905|Stamford Bridge
Celtic FC|Glasgow|United Kingdom|1887|Celtic Park
Rangers FC|Glasgow|United Kingdom|1872|Ibrox
FC Bayern München|Munich|Germany|1900|Allianz Arena
Borussia Dortmund|Dortmund|Germany|1909|Westfalenstadion
Hamburger SV|Hamburg|Germany|1887|Volksparkstadion
1. FC Köln|Cologne|Germany|1948|RheinEnergieStadion
Juventus|Turin|Italy|1897|Allianz Stadium
AC Milan|Milan|Italy|1899|San Siro
Inter Milan|Milan|Italy|1908|San Siro
AS Roma|Rome|Italy|1927|Stadio Olimpico
SSC Napoli|Naples|Italy|1926|Stadio Diego Armando Maradona
Paris Saint-Germain|Paris|France|1970|Parc des Princes
Olympique de Marseille|Marseille|France|1899|Stade Vélodrome
Olympique Lyonnais|Lyon|France|1950|Groupama Stadium
AFC Ajax|Amsterdam|Netherlands|1900|Johan Cruijff Arena
Feyenoord|Rotterdam|Netherlands|1908|De Kuip
PSV Eindhoven|Eindhoven|Netherlands|1913|Philips Stadion
SL Benfica|Lisbon|Portugal|1904|Estádio da Luz
Sporting CP|Lisbon|Portugal|1906|Estádio José Alvalade
FC Porto|Porto|Portugal|1893|Estádio do Dragão
RSC Anderlecht|Brussels|Belgium|1908|Lotto Park
FC Basel|Basel|Switzerland|1893|St. Jakob-Park
SK Rapid Wien|Vienna|Austria|1899|Allianz Stadion
Galatasaray|Istanbul|Turkey|1905|Rams Park
Fenerbahçe|Istanbul|Turkey|1907|Şükrü Saracoğlu
Olympiacos|Piraeus|Greece|1925|Karaiskakis Stadium
Boca Juniors|Buenos Aires|Argentina|1905|La Bombonera
River Plate|Buenos Aires|Argentina|1901|Monumental
Santos FC|Santos|Brazil|1912|Vila Belmiro
Flamengo|Rio de Janeiro|Brazil|1895|Maracanã
""")

CHAMPIONS = parse("""
season|driver|country
1976|James Hunt|United Kingdom
1977|Niki Lauda|Austria
1978|Mario Andretti|United States
1979|Jody Scheckter|South Africa
1980|Alan Jones|Australia
1981|Nelson Piquet|Brazil
1982|Keke Rosberg|Finland
1983|Nelson Piquet|Brazil
1984|Niki Lauda|Austria
1985|Alain Prost|France
1986|Alain Prost|France
1987|Nelson Piquet|Brazil
1988|Ayrton Senna|Brazil
1989|Alain Prost|France
1990|Ayrton Senna|Brazil
1991|Ayrton Senna|Brazil
1992|Nigel Mansell|United Kingdom
1993|Alain Prost|France
1994|Michael Schumacher|Germany
1995|Michael Schumacher|Germany
1996|Damon Hill|United Kingdom
1997|Jacques Villeneuve|Canada
1998|Mika Häkkinen|Finland
1999|Mika Häkkinen|Finland
2000|Michael Schumacher|Germany
2001|Michael Schumacher|Germany
2002|Michael Schumacher|Germany
2003|Michael Schumacher|Germany
2004|Michael Schumacher|Germany
2005|Fernando Alonso|Spain
2006|Fernando Alonso|Spain
2007|Kimi Räikkönen|Finland
2008|Lewis Hamilton|United Kingdom
2009|Jenson Button|United Kingdom
2010|Sebastian Vettel|Germany
2011|Sebastian Vettel|Germany
2012|Sebastian Vettel|Germany
2013|Sebastian Vettel|Germany
2014|Lewis Hamilton|United Kingdom
2015|Lewis Hamilton|United Kingdom
2016|Nico Rosberg|Germany
2017|Lewis Hamilton|United Kingdom
2018|Lewis Hamilton|United Kingdom
2019|Lewis Hamilton|United Kingdom
2020|Lewis Hamilton|United Kingdom
2021|Max Verstappen|Netherlands
2022|Max Verstappen|Netherlands
2023|Max Verstappen|Netherlands
2024|Max Verstappen|Netherlands
""")
