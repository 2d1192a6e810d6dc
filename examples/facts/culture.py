"""Heritage sites, museums, paintings, books, music, films, food, animals and landmarks.

Inscription years are those of the UNESCO World Heritage List, language codes those of ISO 639-1,
literature prizes those of the Nobel Foundation, films those of the Academy Awards; the rest is
general knowledge.
"""

from facts.sheet import parse

HERITAGE_SITES = parse("""
site|country|inscribed
Galápagos Islands|Ecuador|1978
Aachen Cathedral|Germany|1978
Historic Centre of Kraków|Poland|1978
Yellowstone National Park|United States|1978
Memphis and its Necropolis|Egypt|1979
Mont-Saint-Michel and its Bay|France|1979
Palace and Park of Versailles|France|1979
Chartres Cathedral|France|1979
Grand Canyon National Park|United States|1979
Great Barrier Reef|Australia|1981
Serengeti National Park|Tanzania|1981
Speyer Cathedral|Germany|1981
Historic Sanctuary of Machu Picchu|Peru|1983
Taj Mahal|India|1983
Old City of Bern|Switzerland|1983
Alhambra, Generalife and Albayzín, Granada|Spain|1984
Statue of Liberty|United States|1984
Iguazu National Park|Argentina|1984
Petra|Jordan|1985
Historic Areas of Istanbul|Turkey|1985
Stonehenge, Avebury and Associated Sites|United Kingdom|1986
Giant's Causeway|United Kingdom|1986
The Great Wall|China|1987
Venice and its Lagoon|Italy|1987
Acropolis, Athens|Greece|1987
Brasília|Brazil|1987
Uluru-Kata Tjuta National Park|Australia|1987
Kilimanjaro National Park|Tanzania|1987
Moscow Kremlin and Red Square|Russia|1990
Borobudur Temple Compounds|Indonesia|1991
Paris, Banks of the Seine|France|1991
Angkor|Cambodia|1992
Historic Centre of Prague|Czechia|1992
Ha Long Bay|Vietnam|1994
Rapa Nui National Park|Chile|1995
Cologne Cathedral|Germany|1996
Maritime Greenwich|United Kingdom|1997
Robben Island|South Africa|1999
Historic Centre of Vienna|Austria|2001
Sydney Opera House|Australia|2007
""")

MUSEUMS = parse("""
museum|city|country
Louvre Museum|Paris|France
Musée d'Orsay|Paris|France
Centre Pompidou|Paris|France
British Museum|London|United Kingdom
National Gallery|London|United Kingdom
Tate Modern|London|United Kingdom
Victoria and Albert Museum|London|United Kingdom
Museo del Prado|Madrid|Spain
Museo Reina Sofía|Madrid|Spain
Guggenheim Museum Bilbao|Bilbao|Spain
Uffizi Gallery|Florence|Italy
Vatican Museums|Vatican City|Vatican City
Pinacoteca di Brera|Milan|Italy
Rijksmuseum|Amsterdam|Netherlands
Van Gogh Museum|Amsterdam|Netherlands
Mauritshuis|The Hague|Netherlands
Kunsthistorisches Museum|Vienna|Austria
Belvedere|Vienna|Austria
Albertina|Vienna|Austria
Pergamon Museum|Berlin|Germany
Alte Pinakothek|Munich|Germany
Städel Museum|Frankfurt|Germany
Kunsthaus Zürich|Zürich|Switzerland
State Hermitage Museum|Saint Petersburg|Russia
Tretyakov Gallery|Moscow|Russia
National Museum|Oslo|Norway
Nationalmuseum|Stockholm|Sweden
Metropolitan Museum of Art|New York|United States
Museum of Modern Art|New York|United States
Art Institute of Chicago|Chicago|United States
National Gallery of Art|Washington, D.C.|United States
Getty Center|Los Angeles|United States
National Palace Museum|Taipei|Taiwan
Tokyo National Museum|Tokyo|Japan
Egyptian Museum|Cairo|Egypt
National Museum of Anthropology|Mexico City|Mexico
MASP|São Paulo|Brazil
Acropolis Museum|Athens|Greece
""")

PAINTINGS = parse("""
painting|painter|museum
Mona Lisa|Leonardo da Vinci|Louvre Museum
The Last Supper|Leonardo da Vinci|Santa Maria delle Grazie
The Birth of Venus|Sandro Botticelli|Uffizi Gallery
Primavera|Sandro Botticelli|Uffizi Gallery
The School of Athens|Raphael|Vatican Museums
The Garden of Earthly Delights|Hieronymus Bosch|Museo del Prado
Las Meninas|Diego Velázquez|Museo del Prado
The Third of May 1808|Francisco Goya|Museo del Prado
Guernica|Pablo Picasso|Museo Reina Sofía
Les Demoiselles d'Avignon|Pablo Picasso|Museum of Modern Art
The Persistence of Memory|Salvador Dalí|Museum of Modern Art
The Starry Night|Vincent van Gogh|Museum of Modern Art
The Potato Eaters|Vincent van Gogh|Van Gogh Museum
The Night Watch|Rembrandt van Rijn|Rijksmuseum
The Milkmaid|Johannes Vermeer|Rijksmuseum
Girl with a Pearl Earring|Johannes Vermeer|Mauritshuis
The Arnolfini Portrait|Jan van Eyck|National Gallery
Sunflowers|Vincent van Gogh|National Gallery
The Fighting Temeraire|J. M. W. Turner|National Gallery
The Hay Wain|John Constable|National Gallery
The Tower of Babel|Pieter Bruegel the Elder|Kunsthistorisches Museum
Hunters in the Snow|Pieter Bruegel the Elder|Kunsthistorisches Museum
Young Hare|Albrecht Dürer|Albertina
The Kiss|Gustav Klimt|Belvedere
Liberty Leading the People|Eugène Delacroix|Louvre Museum
The Raft of the Medusa|Théodore Géricault|Louvre Museum
Olympia|Édouard Manet|Musée d'Orsay
Luncheon on the Grass|Édouard Manet|Musée d'Orsay
Bal du moulin de la Galette|Pierre-Auguste Renoir|Musée d'Orsay
Impression, Sunrise|Claude Monet|Musée Marmottan Monet
A Sunday on La Grande Jatte|Georges Seurat|Art Institute of Chicago
Nighthawks|Edward Hopper|Art Institute of Chicago
American Gothic|Grant Wood|Art Institute of Chicago
The Scream|Edvard Munch|National Museum
Wanderer above the Sea of Fog|Caspar David Friedrich|Hamburger Kunsthalle
""")

PAINTERS = parse("""
painter|born|died|country
da Vinci, Leonardo|1452-04-15|1519-05-02|Italy
Dürer, Albrecht|1471-05-21|1528-04-06|Germany
Velázquez, Diego|1599-06-06|1660-08-06|Spain
Goya, Francisco|1746-03-30|1828-04-16|Spain
van Rijn, Rembrandt|1606-07-15|1669-10-04|Netherlands
Turner, J. M. W.|1775-04-23|1851-12-19|United Kingdom
Constable, John|1776-06-11|1837-03-31|United Kingdom
Delacroix, Eugène|1798-04-26|1863-08-13|France
Géricault, Théodore|1791-09-26|1824-01-26|France
Friedrich, Caspar David|1774-09-05|1840-05-07|Germany
Manet, Édouard|1832-01-23|1883-04-30|France
Monet, Claude|1840-11-14|1926-12-05|France
Renoir, Pierre-Auguste|1841-02-25|1919-12-03|France
Degas, Edgar|1834-07-19|1917-09-27|France
Cézanne, Paul|1839-01-19|1906-10-22|France
Gauguin, Paul|1848-06-07|1903-05-08|France
van Gogh, Vincent|1853-03-30|1890-07-29|Netherlands
Seurat, Georges|1859-12-02|1891-03-29|France
Klimt, Gustav|1862-07-14|1918-02-06|Austria
Schiele, Egon|1890-06-12|1918-10-31|Austria
Munch, Edvard|1863-12-12|1944-01-23|Norway
Kandinsky, Wassily|1866-12-16|1944-12-13|Russia
Klee, Paul|1879-12-18|1940-06-29|Switzerland
Matisse, Henri|1869-12-31|1954-11-03|France
Picasso, Pablo|1881-10-25|1973-04-08|Spain
Miró, Joan|1893-04-20|1983-12-25|Spain
Dalí, Salvador|1904-05-11|1989-01-23|Spain
Magritte, René|1898-11-21|1967-08-15|Belgium
Kahlo, Frida|1907-07-06|1954-07-13|Mexico
Hopper, Edward|1882-07-22|1967-05-15|United States
O'Keeffe, Georgia|1887-11-15|1986-03-06|United States
Warhol, Andy|1928-08-06|1987-02-22|United States
""")

COMPOSERS = parse("""
composer|born|died|country
Vivaldi, Antonio|1678-03-04|1741-07-28|Italy
Bach, Johann Sebastian|1685-03-31|1750-07-28|Germany
Handel, George Frideric|1685-03-05|1759-04-14|Germany
Haydn, Joseph|1732-03-31|1809-05-31|Austria
Mozart, Wolfgang Amadeus|1756-01-27|1791-12-05|Austria
Rossini, Gioachino|1792-02-29|1868-11-13|Italy
Schubert, Franz|1797-01-31|1828-11-19|Austria
Berlioz, Hector|1803-12-11|1869-03-08|France
Mendelssohn, Felix|1809-02-03|1847-11-04|Germany
Schumann, Robert|1810-06-08|1856-07-29|Germany
Liszt, Franz|1811-10-22|1886-07-31|Hungary
Wagner, Richard|1813-05-22|1883-02-13|Germany
Verdi, Giuseppe|1813-10-10|1901-01-27|Italy
Schumann, Clara|1819-09-13|1896-05-20|Germany
Smetana, Bedřich|1824-03-02|1884-05-12|Czechia
Brahms, Johannes|1833-05-07|1897-04-03|Germany
Bizet, Georges|1838-10-25|1875-06-03|France
Tchaikovsky, Pyotr Ilyich|1840-05-07|1893-11-06|Russia
Dvořák, Antonín|1841-09-08|1904-05-01|Czechia
Grieg, Edvard|1843-06-15|1907-09-04|Norway
Puccini, Giacomo|1858-12-22|1924-11-29|Italy
Mahler, Gustav|1860-07-07|1911-05-18|Austria
Debussy, Claude|1862-08-22|1918-03-25|France
Strauss, Richard|1864-06-11|1949-09-08|Germany
Sibelius, Jean|1865-12-08|1957-09-20|Finland
Ravel, Maurice|1875-03-07|1937-12-28|France
Bartók, Béla|1881-03-25|1945-09-26|Hungary
Stravinsky, Igor|1882-06-17|1971-04-06|Russia
Prokofiev, Sergei|1891-04-27|1953-03-05|Russia
Gershwin, George|1898-09-26|1937-07-11|United States
Shostakovich, Dmitri|1906-09-25|1975-08-09|Russia
""")

WORKS = parse("""
work|composer|first_heard
The Four Seasons|Antonio Vivaldi|1725
Messiah|George Frideric Handel|1742
St Matthew Passion|Johann Sebastian Bach|1727
The Creation|Joseph Haydn|1798
The Marriage of Figaro|Wolfgang Amadeus Mozart|1786
Don Giovanni|Wolfgang Amadeus Mozart|1787
The Magic Flute|Wolfgang Amadeus Mozart|1791
Fidelio|Ludwig van Beethoven|1805
Symphony No. 9|Ludwig van Beethoven|1824
The Barber of Seville|Gioachino Rossini|1816
Symphonie fantastique|Hector Berlioz|1830
Lohengrin|Richard Wagner|1850
Rigoletto|Giuseppe Verdi|1851
La traviata|Giuseppe Verdi|1853
Tristan und Isolde|Richard Wagner|1865
The Bartered Bride|Bedřich Smetana|1866
A German Requiem|Johannes Brahms|1869
Aida|Giuseppe Verdi|1871
Carmen|Georges Bizet|1875
Swan Lake|Pyotr Ilyich Tchaikovsky|1877
The Nutcracker|Pyotr Ilyich Tchaikovsky|1892
New World Symphony|Antonín Dvořák|1893
La bohème|Giacomo Puccini|1896
Tosca|Giacomo Puccini|1900
Rusalka|Antonín Dvořák|1901
Pelléas et Mélisande|Claude Debussy|1902
La mer|Claude Debussy|1905
The Firebird|Igor Stravinsky|1910
The Rite of Spring|Igor Stravinsky|1913
Rhapsody in Blue|George Gershwin|1924
Boléro|Maurice Ravel|1928
Peter and the Wolf|Sergei Prokofiev|1936
""")

NOVELS = parse("""
title|author|published|language
Don Quixote|Miguel de Cervantes|1605|Spanish
Robinson Crusoe|Daniel Defoe|1719|English
Gulliver's Travels|Jonathan Swift|1726|English
The Sorrows of Young Werther|Johann Wolfgang von Goethe|1774|German
Pride and Prejudice|Jane Austen|1813|English
Frankenstein|Mary Shelley|1818|English
The Red and the Black|Stendhal|1830|French
The Count of Monte Cristo|Alexandre Dumas|1844|French
Jane Eyre|Charlotte Brontë|1847|English
Wuthering Heights|Emily Brontë|1847|English
Moby-Dick|Herman Melville|1851|English
Madame Bovary|Gustave Flaubert|1857|French
Les Misérables|Victor Hugo|1862|French
Crime and Punishment|Fyodor Dostoevsky|1866|Russian
War and Peace|Leo Tolstoy|1869|Russian
Around the World in Eighty Days|Jules Verne|1873|French
Anna Karenina|Leo Tolstoy|1878|Russian
Adventures of Huckleberry Finn|Mark Twain|1884|English
Dracula|Bram Stoker|1897|English
Buddenbrooks|Thomas Mann|1901|German
Swann's Way|Marcel Proust|1913|French
The Metamorphosis|Franz Kafka|1915|German
Ulysses|James Joyce|1922|English
The Magic Mountain|Thomas Mann|1924|German
The Trial|Franz Kafka|1925|German
The Great Gatsby|F. Scott Fitzgerald|1925|English
Mrs Dalloway|Virginia Woolf|1925|English
Steppenwolf|Hermann Hesse|1927|German
Brave New World|Aldous Huxley|1932|English
The Stranger|Albert Camus|1942|French
Nineteen Eighty-Four|George Orwell|1949|English
The Old Man and the Sea|Ernest Hemingway|1952|English
Doctor Zhivago|Boris Pasternak|1957|Russian
The Leopard|Giuseppe Tomasi di Lampedusa|1958|Italian
The Tin Drum|Günter Grass|1959|German
To Kill a Mockingbird|Harper Lee|1960|English
One Hundred Years of Solitude|Gabriel García Márquez|1967|Spanish
The Name of the Rose|Umberto Eco|1980|Italian
The House of the Spirits|Isabel Allende|1982|Spanish
Blindness|José Saramago|1995|Portuguese
""")

LITERATURE_PRIZES = parse("""
year|laureate|country
1901|Prudhomme, Sully|France
1903|Bjørnson, Bjørnstjerne|Norway
1905|Sienkiewicz, Henryk|Poland
1907|Kipling, Rudyard|United Kingdom
1909|Lagerlöf, Selma|Sweden
1913|Tagore, Rabindranath|India
1920|Hamsun, Knut|Norway
1923|Yeats, William Butler|Ireland
1925|Shaw, George Bernard|Ireland
1928|Undset, Sigrid|Norway
1929|Mann, Thomas|Germany
1930|Lewis, Sinclair|United States
1934|Pirandello, Luigi|Italy
1945|Mistral, Gabriela|Chile
1946|Hesse, Hermann|Switzerland
1948|Eliot, T. S.|United Kingdom
1949|Faulkner, William|United States
1953|Churchill, Winston|United Kingdom
1954|Hemingway, Ernest|United States
1955|Laxness, Halldór|Iceland
1957|Camus, Albert|France
1958|Pasternak, Boris|Soviet Union
1962|Steinbeck, John|United States
1968|Kawabata, Yasunari|Japan
1969|Beckett, Samuel|Ireland
1971|Neruda, Pablo|Chile
1972|Böll, Heinrich|Germany
1982|García Márquez, Gabriel|Colombia
1993|Morrison, Toni|United States
1996|Szymborska, Wisława|Poland
1998|Saramago, José|Portugal
1999|Grass, Günter|Germany
2010|Vargas Llosa, Mario|Peru
2013|Munro, Alice|Canada
2015|Alexievich, Svetlana|Belarus
2017|Ishiguro, Kazuo|United Kingdom
2018|Tokarczuk, Olga|Poland
2020|Glück, Louise|United States
2022|Ernaux, Annie|France
2023|Fosse, Jon|Norway
2024|Han, Kang|South Korea
""")

FILMS = parse("""
award_year|film|director
1992|The Silence of the Lambs|Jonathan Demme
1993|Unforgiven|Clint Eastwood
1994|Schindler's List|Steven Spielberg
1995|Forrest Gump|Robert Zemeckis
1996|Braveheart|Mel Gibson
1997|The English Patient|Anthony Minghella
1998|Titanic|James Cameron
1999|Shakespeare in Love|John Madden
2000|American Beauty|Sam Mendes
2001|Gladiator|Ridley Scott
2002|A Beautiful Mind|Ron Howard
2003|Chicago|Rob Marshall
2004|The Lord of the Rings: The Return of the King|Peter Jackson
2005|Million Dollar Baby|Clint Eastwood
2006|Crash|Paul Haggis
2007|The Departed|Martin Scorsese
2008|No Country for Old Men|Joel and Ethan Coen
2009|Slumdog Millionaire|Danny Boyle
2010|The Hurt Locker|Kathryn Bigelow
2011|The King's Speech|Tom Hooper
2012|The Artist|Michel Hazanavicius
2013|Argo|Ben Affleck
2014|12 Years a Slave|Steve McQueen
2015|Birdman|Alejandro G. Iñárritu
2016|Spotlight|Tom McCarthy
2017|Moonlight|Barry Jenkins
2018|The Shape of Water|Guillermo del Toro
2019|Green Book|Peter Farrelly
2020|Parasite|Bong Joon-ho
2021|Nomadland|Chloé Zhao
2022|CODA|Sian Heder
2024|Oppenheimer|Christopher Nolan
2025|Anora|Sean Baker
""")

LANGUAGES = parse("""
code|language|family
ar|Arabic|Semitic
bg|Bulgarian|Slavic
bn|Bengali|Indo-Aryan
ca|Catalan|Romance
cs|Czech|Slavic
cy|Welsh|Celtic
da|Danish|Germanic
de|German|Germanic
el|Greek|Hellenic
en|English|Germanic
es|Spanish|Romance
et|Estonian|Uralic
eu|Basque|Isolate
fa|Persian|Iranian
fi|Finnish|Uralic
fr|French|Romance
ga|Irish|Celtic
he|Hebrew|Semitic
hi|Hindi|Indo-Aryan
hr|Croatian|Slavic
hu|Hungarian|Uralic
hy|Armenian|Armenian
id|Indonesian|Austronesian
is|Icelandic|Germanic
it|Italian|Romance
ja|Japanese|Japonic
ka|Georgian|Kartvelian
ko|Korean|Koreanic
lt|Lithuanian|Baltic
lv|Latvian|Baltic
mt|Maltese|Semitic
nl|Dutch|Germanic
no|Norwegian|Germanic
pl|Polish|Slavic
pt|Portuguese|Romance
ro|Romanian|Romance
ru|Russian|Slavic
sk|Slovak|Slavic
sl|Slovenian|Slavic
sq|Albanian|Albanian
sr|Serbian|Slavic
sv|Swedish|Germanic
sw|Swahili|Bantu
ta|Tamil|Dravidian
th|Thai|Kra-Dai
tr|Turkish|Turkic
uk|Ukrainian|Slavic
ur|Urdu|Indo-Aryan
vi|Vietnamese|Austroasiatic
zh|Chinese|Sinitic
""")

CHEESES = parse("""
cheese|country|milk
Camembert|France|cow
Brie|France|cow
Roquefort|France|sheep
Comté|France|cow
Reblochon|France|cow
Munster|France|cow
Gruyère|Switzerland|cow
Emmental|Switzerland|cow
Appenzeller|Switzerland|cow
Parmigiano Reggiano|Italy|cow
Gorgonzola|Italy|cow
Mozzarella di bufala|Italy|buffalo
Pecorino Romano|Italy|sheep
Taleggio|Italy|cow
Manchego|Spain|sheep
Cabrales|Spain|
Gouda|Netherlands|cow
Edam|Netherlands|cow
Cheddar|United Kingdom|cow
Stilton|United Kingdom|cow
Feta|Greece|sheep
Halloumi|Cyprus|
Limburger|Belgium|cow
Oscypek|Poland|sheep
Brunost|Norway|
""")

DOG_BREEDS = parse("""
breed|origin
Labrador Retriever|United Kingdom
German Shepherd|Germany
Dachshund|Germany
Rottweiler|Germany
Great Dane|Germany
Boxer|Germany
Bernese Mountain Dog|Switzerland
Saint Bernard|Switzerland
Border Collie|United Kingdom
Bulldog|United Kingdom
Beagle|United Kingdom
Yorkshire Terrier|United Kingdom
Irish Setter|Ireland
Irish Wolfhound|Ireland
Basset Hound|France
Siberian Husky|Russia
Samoyed|Russia
Akita|Japan
Shiba Inu|Japan
Chow Chow|China
Pug|China
Pekingese|China
Chihuahua|Mexico
Newfoundland|Canada
Australian Terrier|Australia
Portuguese Water Dog|Portugal
Norwegian Elkhound|Norway
Puli|Hungary
Vizsla|Hungary
""")

INSTRUMENTS = parse("""
instrument|family
Violin|strings
Viola|strings
Cello|strings
Double bass|strings
Harp|strings
Guitar|strings
Lute|strings
Flute|woodwind
Piccolo|woodwind
Oboe|woodwind
Clarinet|woodwind
Bassoon|woodwind
Saxophone|woodwind
Recorder|woodwind
Trumpet|brass
Trombone|brass
French horn|brass
Tuba|brass
Timpani|percussion
Snare drum|percussion
Xylophone|percussion
Triangle|percussion
Piano|keyboard
Harpsichord|keyboard
Organ|keyboard
Accordion|keyboard
""")

NEWSPAPERS = parse("""
newspaper|city|country|founded
The Times|London|United Kingdom|1785
The Guardian|London|United Kingdom|1821
Financial Times|London|United Kingdom|1888
Neue Zürcher Zeitung|Zürich|Switzerland|1780
Le Figaro|Paris|France|1826
Le Monde|Paris|France|1944
Libération|Paris|France|1973
Frankfurter Allgemeine Zeitung|Frankfurt|Germany|1949
Süddeutsche Zeitung|Munich|Germany|1945
Die Zeit|Hamburg|Germany|1946
Der Standard|Vienna|Austria|1988
Corriere della Sera|Milan|Italy|1876
La Repubblica|Rome|Italy|1976
La Stampa|Turin|Italy|1867
El País|Madrid|Spain|1976
La Vanguardia|Barcelona|Spain|1881
Gazeta Wyborcza|Warsaw|Poland|1989
Aftenposten|Oslo|Norway|1860
Dagens Nyheter|Stockholm|Sweden|1864
Helsingin Sanomat|Helsinki|Finland|1889
The Irish Times|Dublin|Ireland|1859
The New York Times|New York|United States|1851
The Wall Street Journal|New York|United States|1889
The Washington Post|Washington, D.C.|United States|1877
Chicago Tribune|Chicago|United States|1847
The Globe and Mail|Toronto|Canada|1844
La Nación|Buenos Aires|Argentina|1870
El Mercurio|Santiago|Chile|1900
Folha de S.Paulo|São Paulo|Brazil|1921
The Times of India|Mumbai|India|1838
The Sydney Morning Herald|Sydney|Australia|1831
Asahi Shimbun|Osaka|Japan|1879
""")

BRIDGES = parse("""
bridge|city|opened
Brooklyn Bridge|New York|1883-05-24
Tower Bridge|London|1894-06-30
Sydney Harbour Bridge|Sydney|1932-03-19
Golden Gate Bridge|San Francisco|1937-05-27
Bosphorus Bridge|Istanbul|1973-10-30
Vasco da Gama Bridge|Lisbon|1998-03-29
25 de Abril Bridge|Lisbon|1966-08-06
Humber Bridge|Hull|1981-06-24
Severn Bridge|Bristol|1966-09-08
Akashi Kaikyo Bridge|Kobe|1998-04-05
Great Belt Bridge|Korsør|1998-06-14
Øresund Bridge|Copenhagen|2000-07-01
Millau Viaduct|Millau|2004-12-16
George Washington Bridge|New York|1931-10-25
Verrazzano-Narrows Bridge|New York|1964-11-21
Forth Bridge|Edinburgh|1890-03-04
""")

LANDMARKS = parse("""
landmark|street|city
Empire State Building|350 Fifth Avenue|New York
Chrysler Building|405 Lexington Avenue|New York
Flatiron Building|175 Fifth Avenue|New York
Metropolitan Museum of Art|1000 Fifth Avenue|New York
Museum of Modern Art|11 West 53rd Street|New York
Guggenheim Museum|1071 Fifth Avenue|New York
New York Public Library|476 Fifth Avenue|New York
Carnegie Hall|881 Seventh Avenue|New York
Rockefeller Center|45 Rockefeller Plaza|New York
White House|1600 Pennsylvania Avenue|Washington, D.C.
Art Institute of Chicago|111 South Michigan Avenue|Chicago
Willis Tower|233 South Wacker Drive|Chicago
Griffith Observatory|2800 East Observatory Road|Los Angeles
Dolby Theatre|6801 Hollywood Boulevard|Los Angeles
Coit Tower|1 Telegraph Hill Boulevard|San Francisco
Space Needle|400 Broad Street|Seattle
Prime Minister's Office|10 Downing Street|London
Sherlock Holmes Museum|221b Baker Street|London
British Museum|Great Russell Street|London
Abbey Road Studios|3 Abbey Road|London
CN Tower|290 Bremner Boulevard|Toronto
""")

BUILDINGS = parse("""
building|city|country|height_m|completed
Burj Khalifa|Dubai|United Arab Emirates|828|2010
Merdeka 118|Kuala Lumpur|Malaysia|679|2023
Shanghai Tower|Shanghai|China|632|2015
Abraj Al Bait|Mecca|Saudi Arabia|601|2012
Ping An Finance Centre|Shenzhen|China|599|2017
Lotte World Tower|Seoul|South Korea|555|2017
One World Trade Center|New York|United States|541|2014
Taipei 101|Taipei|Taiwan|508|2004
Shanghai World Financial Center|Shanghai|China|492|2008
Petronas Towers|Kuala Lumpur|Malaysia|452|1998
Willis Tower|Chicago|United States|442|1974
Empire State Building|New York|United States|381|1931
Eiffel Tower|Paris|France|330|1889
Chrysler Building|New York|United States|319|1930
The Shard|London|United Kingdom|310|2012
Commerzbank Tower|Frankfurt|Germany|259|1997
CN Tower|Toronto|Canada|553|1976
Tokyo Skytree|Tokyo|Japan|634|2012
Torre Costanera|Santiago|Chile|300|2013
""")
