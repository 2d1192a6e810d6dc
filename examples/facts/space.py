"""Planets, moons, stars and space flight.

Names follow the International Astronomical Union; launch and landing dates (UTC) are those that the
space agencies give.
"""

from facts.sheet import parse

PLANETS = parse("""
planet|diameter_km|moons|orbit_years
Mercury|4879|0|0.24
Venus|12104|0|0.62
Earth|12756|1|1.00
Mars|6792|2|1.88
Jupiter|142984|95|11.86
Saturn|120536|146|29.4
Uranus|51118|28|84.0
Neptune|49528|16|164.8
""")

MOONS = parse("""
moon|planet|discoverer|year
Phobos|Mars|Asaph Hall|1877
Deimos|Mars|Asaph Hall|1877
Io|Jupiter|Galileo Galilei|1610
Europa|Jupiter|Galileo Galilei|1610
Ganymede|Jupiter|Galileo Galilei|1610
Callisto|Jupiter|Galileo Galilei|1610
Amalthea|Jupiter|Edward Emerson Barnard|1892
Himalia|Jupiter|Charles Dillon Perrine|1904
Titan|Saturn|Christiaan Huygens|1655
Iapetus|Saturn|Giovanni Domenico Cassini|1671
Rhea|Saturn|Giovanni Domenico Cassini|1672
Tethys|Saturn|Giovanni Domenico Cassini|1684
Dione|Saturn|Giovanni Domenico Cassini|1684
Mimas|Saturn|William Herschel|1789
Enceladus|Saturn|William Herschel|1789
Hyperion|Saturn|William Lassell|1848
Phoebe|Saturn|William Henry Pickering|1899
Titania|Uranus|William Herschel|1787
Oberon|Uranus|William Herschel|1787
Ariel|Uranus|William Lassell|1851
Umbriel|Uranus|William Lassell|1851
Miranda|Uranus|Gerard Kuiper|1948
Triton|Neptune|William Lassell|1846
Nereid|Neptune|Gerard Kuiper|1949
Charon|Pluto|James Christy|1978
""")

MISSIONS = parse("""
mission|agency|launched|target
Sputnik 1|USSR|1957-10-04|Earth orbit
Sputnik 2|USSR|1957-11-03|Earth orbit
Explorer 1|NASA|1958-02-01|Earth orbit
Luna 2|USSR|1959-09-12|Moon
Vostok 1|USSR|1961-04-12|Earth orbit
Mercury-Redstone 3|NASA|1961-05-05|Suborbital
Vostok 6|USSR|1963-06-16|Earth orbit
Mariner 4|NASA|1964-11-28|Mars
Apollo 8|NASA|1968-12-21|Moon
Apollo 11|NASA|1969-07-16|Moon
Apollo 12|NASA|1969-11-14|Moon
Apollo 13|NASA|1970-04-11|Moon
Apollo 14|NASA|1971-01-31|Moon
Salyut 1|USSR|1971-04-19|Earth orbit
Mariner 9|NASA|1971-05-30|Mars
Apollo 15|NASA|1971-07-26|Moon
Pioneer 10|NASA|1972-03-03|Jupiter
Apollo 16|NASA|1972-04-16|Moon
Apollo 17|NASA|1972-12-07|Moon
Skylab|NASA|1973-05-14|Earth orbit
Viking 1|NASA|1975-08-20|Mars
Voyager 2|NASA|1977-08-20|Neptune
Voyager 1|NASA|1977-09-05|Saturn
STS-1|NASA|1981-04-12|Earth orbit
Giotto|ESA|1985-07-02|Halley's Comet
Mir|USSR|1986-02-20|Earth orbit
Galileo|NASA|1989-10-18|Jupiter
Hubble Space Telescope|NASA|1990-04-24|Earth orbit
Mars Pathfinder|NASA|1996-12-04|Mars
Cassini-Huygens|NASA|1997-10-15|Saturn
Zarya|Roscosmos|1998-11-20|Earth orbit
Mars Express|ESA|2003-06-02|Mars
Shenzhou 5|CNSA|2003-10-15|Earth orbit
Rosetta|ESA|2004-03-02|67P/Churyumov-Gerasimenko
New Horizons|NASA|2006-01-19|Pluto
Kepler|NASA|2009-03-07|Heliocentric orbit
Curiosity|NASA|2011-11-26|Mars
Mangalyaan|ISRO|2013-11-05|Mars
Gaia|ESA|2013-12-19|Sun-Earth L2
Hayabusa2|JAXA|2014-12-03|Ryugu
BepiColombo|ESA|2018-10-20|Mercury
Perseverance|NASA|2020-07-30|Mars
Tianwen-1|CNSA|2020-07-23|Mars
James Webb Space Telescope|NASA|2021-12-25|Sun-Earth L2
Artemis I|NASA|2022-11-16|Moon
Juice|ESA|2023-04-14|Jupiter
Chandrayaan-3|ISRO|2023-07-14|Moon
Europa Clipper|NASA|2024-10-14|Jupiter
""")

MOON_WALKERS = parse("""
astronaut|mission|landed|born
Armstrong, Neil|Apollo 11|1969-07-20|1930-08-05
Aldrin, Buzz|Apollo 11|1969-07-20|1930-01-20
Conrad, Pete|Apollo 12|1969-11-19|1930-06-02
Bean, Alan|Apollo 12|1969-11-19|1932-03-15
Shepard, Alan|Apollo 14|1971-02-05|1923-11-18
Mitchell, Edgar|Apollo 14|1971-02-05|1930-09-17
Scott, David|Apollo 15|1971-07-30|1932-06-06
Irwin, James|Apollo 15|1971-07-30|1930-03-17
Young, John|Apollo 16|1972-04-21|1930-09-24
Duke, Charles|Apollo 16|1972-04-21|1935-10-03
Cernan, Eugene|Apollo 17|1972-12-11|1934-03-14
Schmitt, Harrison|Apollo 17|1972-12-11|1935-07-03
""")

FIRST_FLIGHTS = parse("""
traveller|country|first_flight
Gagarin, Yuri|Soviet Union|1961-04-12
Shepard, Alan|United States|1961-05-05
Titov, Gherman|Soviet Union|1961-08-06
Glenn, John|United States|1962-02-20
Tereshkova, Valentina|Soviet Union|1963-06-16
Leonov, Alexei|Soviet Union|1965-03-18
Young, John|United States|1965-03-23
Armstrong, Neil|United States|1966-03-16
Aldrin, Buzz|United States|1966-11-11
Remek, Vladimír|Czechoslovakia|1978-03-02
Jähn, Sigmund|East Germany|1978-08-26
Chrétien, Jean-Loup|France|1982-06-24
Savitskaya, Svetlana|Soviet Union|1982-08-19
Ride, Sally|United States|1983-06-18
Merbold, Ulf|Germany|1983-11-28
Sharma, Rakesh|India|1984-04-03
Garneau, Marc|Canada|1984-10-05
Sharman, Helen|United Kingdom|1991-05-18
Jemison, Mae|United States|1992-09-12
Nicollier, Claude|Switzerland|1992-07-31
Yang, Liwei|China|2003-10-15
Pontes, Marcos|Brazil|2006-03-30
""")

STARS = parse("""
star|designation|constellation
Sirius|Alpha Canis Majoris|Canis Major
Canopus|Alpha Carinae|Carina
Rigil Kentaurus|Alpha Centauri|Centaurus
Arcturus|Alpha Boötis|Boötes
Vega|Alpha Lyrae|Lyra
Capella|Alpha Aurigae|Auriga
Rigel|Beta Orionis|Orion
Procyon|Alpha Canis Minoris|Canis Minor
Achernar|Alpha Eridani|Eridanus
Betelgeuse|Alpha Orionis|Orion
Hadar|Beta Centauri|Centaurus
Altair|Alpha Aquilae|Aquila
Acrux|Alpha Crucis|Crux
Aldebaran|Alpha Tauri|Taurus
Antares|Alpha Scorpii|Scorpius
Spica|Alpha Virginis|Virgo
Pollux|Beta Geminorum|Gemini
Fomalhaut|Alpha Piscis Austrini|Piscis Austrinus
Deneb|Alpha Cygni|Cygnus
Mimosa|Beta Crucis|Crux
Regulus|Alpha Leonis|Leo
Castor|Alpha Geminorum|Gemini
Polaris|Alpha Ursae Minoris|Ursa Minor
""")

CONSTELLATIONS = parse("""
constellation|abbreviation|english
Andromeda|And|Andromeda
Aquarius|Aqr|Water Bearer
Aquila|Aql|Eagle
Aries|Ari|Ram
Auriga|Aur|Charioteer
Boötes|Boo|Herdsman
Cancer|Cnc|Crab
Canis Major|CMa|Greater Dog
Canis Minor|CMi|Lesser Dog
Capricornus|Cap|Sea Goat
Carina|Car|Keel
Cassiopeia|Cas|Cassiopeia
Centaurus|Cen|Centaur
Cepheus|Cep|Cepheus
Cetus|Cet|Whale
Corona Borealis|CrB|Northern Crown
Crux|Cru|Southern Cross
Cygnus|Cyg|Swan
Draco|Dra|Dragon
Eridanus|Eri|River
Gemini|Gem|Twins
Hercules|Her|Hercules
Hydra|Hya|Water Snake
Leo|Leo|Lion
Libra|Lib|Scales
Lyra|Lyr|Lyre
Orion|Ori|Hunter
Pegasus|Peg|Winged Horse
Perseus|Per|Perseus
Pisces|Psc|Fishes
Piscis Austrinus|PsA|Southern Fish
Sagittarius|Sgr|Archer
Scorpius|Sco|Scorpion
Taurus|Tau|Bull
Ursa Major|UMa|Great Bear
Ursa Minor|UMi|Little Bear
Virgo|Vir|Virgin
Vulpecula|Vul|Fox
""")
