"""Heads of state and government, treaties and battles.

Terms of office as the governments list them; dates of treaties and battles are general knowledge,
in the Gregorian calendar.
"""

from facts.sheet import parse

US_PRESIDENTS = parse("""
number|president|took_office|party
1|Washington, George|1789-04-30|
2|Adams, John|1797-03-04|Federalist
3|Jefferson, Thomas|1801-03-04|Democratic-Republican
4|Madison, James|1809-03-04|Democratic-Republican
5|Monroe, James|1817-03-04|Democratic-Republican
6|Adams, John Quincy|1825-03-04|Democratic-Republican
7|Jackson, Andrew|1829-03-04|Democratic
8|Van Buren, Martin|1837-03-04|Democratic
9|Harrison, William Henry|1841-03-04|Whig
10|Tyler, John|1841-04-04|Whig
11|Polk, James K.|1845-03-04|Democratic
12|Taylor, Zachary|1849-03-04|Whig
13|Fillmore, Millard|1850-07-09|Whig
14|Pierce, Franklin|1853-03-04|Democratic
15|Buchanan, James|1857-03-04|Democratic
16|Lincoln, Abraham|1861-03-04|Republican
17|Johnson, Andrew|1865-04-15|National Union
18|Grant, Ulysses S.|1869-03-04|Republican
19|Hayes, Rutherford B.|1877-03-04|Republican
20|Garfield, James A.|1881-03-04|Republican
21|Arthur, Chester A.|1881-09-19|Republican
22|Cleveland, Grover|1885-03-04|Democratic
23|Harrison, Benjamin|1889-03-04|Republican
24|Cleveland, Grover|1893-03-04|Democratic
25|McKinley, William|1897-03-04|Republican
26|Roosevelt, Theodore|1901-09-14|Republican
27|Taft, William Howard|1909-03-04|Republican
28|Wilson, Woodrow|1913-03-04|Democratic
29|Harding, Warren G.|1921-03-04|Republican
30|Coolidge, Calvin|1923-08-02|Republican
31|Hoover, Herbert|1929-03-04|Republican
32|Roosevelt, Franklin D.|1933-03-04|Democratic
33|Truman, Harry S.|1945-04-12|Democratic
34|Eisenhower, Dwight D.|1953-01-20|Republican
35|Kennedy, John F.|1961-01-20|Democratic
36|Johnson, Lyndon B.|1963-11-22|Democratic
37|Nixon, Richard|1969-01-20|Republican
38|Ford, Gerald|1974-08-09|Republican
39|Carter, Jimmy|1977-01-20|Democratic
40|Reagan, Ronald|1981-01-20|Republican
41|Bush, George H. W.|1989-01-20|Republican
42|Clinton, Bill|1993-01-20|Democratic
43|Bush, George W.|2001-01-20|Republican
44|Obama, Barack|2009-01-20|Democratic
45|Trump, Donald|2017-01-20|Republican
46|Biden, Joe|2021-01-20|Democratic
47|Trump, Donald|2025-01-20|Republican
""")

EUROPEAN_LEADERS = parse("""
leader|office|took_office
Adenauer, Konrad|Chancellor of Germany|1949-09-15
Erhard, Ludwig|Chancellor of Germany|1963-10-16
Kiesinger, Kurt Georg|Chancellor of Germany|1966-12-01
Brandt, Willy|Chancellor of Germany|1969-10-21
Schmidt, Helmut|Chancellor of Germany|1974-05-16
Kohl, Helmut|Chancellor of Germany|1982-10-01
Schröder, Gerhard|Chancellor of Germany|1998-10-27
Merkel, Angela|Chancellor of Germany|2005-11-22
Scholz, Olaf|Chancellor of Germany|2021-12-08
Merz, Friedrich|Chancellor of Germany|2025-05-06
de Gaulle, Charles|President of France|1959-01-08
Pompidou, Georges|President of France|1969-06-20
Giscard d'Estaing, Valéry|President of France|1974-05-27
Mitterrand, François|President of France|1981-05-21
Chirac, Jacques|President of France|1995-05-17
Sarkozy, Nicolas|President of France|2007-05-16
Hollande, François|President of France|2012-05-15
Macron, Emmanuel|President of France|2017-05-14
Thatcher, Margaret|Prime Minister of the United Kingdom|1979-05-04
Major, John|Prime Minister of the United Kingdom|1990-11-28
Blair, Tony|Prime Minister of the United Kingdom|1997-05-02
Brown, Gordon|Prime Minister of the United Kingdom|2007-06-27
Cameron, David|Prime Minister of the United Kingdom|2010-05-11
May, Theresa|Prime Minister of the United Kingdom|2016-07-13
Johnson, Boris|Prime Minister of the United Kingdom|2019-07-24
Sunak, Rishi|Prime Minister of the United Kingdom|2022-10-25
Starmer, Keir|Prime Minister of the United Kingdom|2024-07-05
""")

SECRETARIES_GENERAL = parse("""
secretary_general|country|took_office
Lie, Trygve|Norway|1946-02-02
Hammarskjöld, Dag|Sweden|1953-04-10
Thant, U|Myanmar|1961-11-03
Waldheim, Kurt|Austria|1972-01-01
Pérez de Cuéllar, Javier|Peru|1982-01-01
Boutros-Ghali, Boutros|Egypt|1992-01-01
Annan, Kofi|Ghana|1997-01-01
Ban, Ki-moon|South Korea|2007-01-01
Guterres, António|Portugal|2017-01-01
""")

TREATIES = parse("""
treaty|place|signed
Magna Carta|Runnymede|1215-06-15
Treaty of Tordesillas|Tordesillas|1494-06-07
Peace of Augsburg|Augsburg|1555-09-25
Edict of Nantes|Nantes|1598-04-13
Peace of Westphalia|Münster|1648-10-24
Treaty of Utrecht|Utrecht|1713-04-11
Treaty of Paris|Paris|1783-09-03
Louisiana Purchase|Paris|1803-04-30
Congress of Vienna, Final Act|Vienna|1815-06-09
First Geneva Convention|Geneva|1864-08-22
Entente Cordiale|London|1904-04-08
Treaty of Brest-Litovsk|Brest-Litovsk|1918-03-03
Treaty of Versailles|Versailles|1919-06-28
Treaty of Trianon|Versailles|1920-06-04
Treaty of Rapallo|Rapallo|1922-04-16
Treaty of Lausanne|Lausanne|1923-07-24
Locarno Treaties|London|1925-12-01
Kellogg-Briand Pact|Paris|1928-08-27
Munich Agreement|Munich|1938-09-30
Charter of the United Nations|San Francisco|1945-06-26
North Atlantic Treaty|Washington, D.C.|1949-04-04
Austrian State Treaty|Vienna|1955-05-15
Treaty of Rome|Rome|1957-03-25
Antarctic Treaty|Washington, D.C.|1959-12-01
Élysée Treaty|Paris|1963-01-22
Helsinki Final Act|Helsinki|1975-08-01
Montreal Protocol|Montréal|1987-09-16
Maastricht Treaty|Maastricht|1992-02-07
Kyoto Protocol|Kyoto|1997-12-11
Treaty of Lisbon|Lisbon|2007-12-13
Paris Agreement|Paris|2015-12-12
""")

BATTLES = parse("""
battle|fought|country_today
Hastings|1066-10-14|United Kingdom
Agincourt|1415-10-25|France
Lepanto|1571-10-07|Greece
Blenheim|1704-08-13|Germany
Culloden|1746-04-16|United Kingdom
Valmy|1792-09-20|France
Marengo|1800-06-14|Italy
Trafalgar|1805-10-21|Spain
Austerlitz|1805-12-02|Czechia
Borodino|1812-09-07|Russia
Waterloo|1815-06-18|Belgium
Solferino|1859-06-24|Italy
Gettysburg|1863-07-01|United States
Königgrätz|1866-07-03|Czechia
Sedan|1870-09-01|France
Tannenberg|1914-08-26|Poland
Verdun|1916-02-21|France
Somme|1916-07-01|France
Midway|1942-06-04|United States
El Alamein|1942-10-23|Egypt
Normandy|1944-06-06|France
""")
