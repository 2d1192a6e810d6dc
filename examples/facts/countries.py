"""Countries of the world: ISO 3166 and ISO 4217 codes, capitals and telephone prefixes.

Codes come from ISO 3166-1 and ISO 4217, prefixes from ITU-T E.164. `COUNTRIES` holds the short
English name that most tables use and, in `filed_as`, the inverted or formal name under which
statistical offices file a country where it differs.
"""

from facts.sheet import parse

COUNTRIES = parse("""
alpha2|alpha3|numeric|name|filed_as|capital|continent|currency|dial
AF|AFG|004|Afghanistan||Kabul|Asia|AFN|+93
AL|ALB|008|Albania||Tirana|Europe|ALL|+355
DZ|DZA|012|Algeria||Algiers|Africa|DZD|+213
AD|AND|020|Andorra||Andorra la Vella|Europe|EUR|+376
AO|AGO|024|Angola||Luanda|Africa|AOA|+244
AG|ATG|028|Antigua and Barbuda||Saint John's|North America|XCD|+1-268
AR|ARG|032|Argentina||Buenos Aires|South America|ARS|+54
AM|ARM|051|Armenia||Yerevan|Asia|AMD|+374
AU|AUS|036|Australia||Canberra|Oceania|AUD|+61
AT|AUT|040|Austria||Vienna|Europe|EUR|+43
AZ|AZE|031|Azerbaijan||Baku|Asia|AZN|+994
BS|BHS|044|Bahamas|Bahamas, The|Nassau|North America|BSD|+1-242
BH|BHR|048|Bahrain||Manama|Asia|BHD|+973
BD|BGD|050|Bangladesh||Dhaka|Asia|BDT|+880
BB|BRB|052|Barbados||Bridgetown|North America|BBD|+1-246
BY|BLR|112|Belarus||Minsk|Europe|BYN|+375
BE|BEL|056|Belgium||Brussels|Europe|EUR|+32
BZ|BLZ|084|Belize||Belmopan|North America|BZD|+501
BJ|BEN|204|Benin||Porto-Novo|Africa|XOF|+229
BT|BTN|064|Bhutan||Thimphu|Asia|BTN|+975
BO|BOL|068|Bolivia|Bolivia, Plurinational State of|Sucre|South America|BOB|+591
BA|BIH|070|Bosnia and Herzegovina|Bosnia & Herzegovina|Sarajevo|Europe|BAM|+387
BW|BWA|072|Botswana||Gaborone|Africa|BWP|+267
BR|BRA|076|Brazil||Brasília|South America|BRL|+55
BN|BRN|096|Brunei|Brunei Darussalam|Bandar Seri Begawan|Asia|BND|+673
BG|BGR|100|Bulgaria||Sofia|Europe|BGN|+359
BF|BFA|854|Burkina Faso||Ouagadougou|Africa|XOF|+226
BI|BDI|108|Burundi||Gitega|Africa|BIF|+257
CV|CPV|132|Cabo Verde|Cape Verde|Praia|Africa|CVE|+238
KH|KHM|116|Cambodia||Phnom Penh|Asia|KHR|+855
CM|CMR|120|Cameroon||Yaoundé|Africa|XAF|+237
CA|CAN|124|Canada||Ottawa|North America|CAD|+1
CF|CAF|140|Central African Republic||Bangui|Africa|XAF|+236
TD|TCD|148|Chad||N'Djamena|Africa|XAF|+235
CL|CHL|152|Chile||Santiago|South America|CLP|+56
CN|CHN|156|China||Beijing|Asia|CNY|+86
CO|COL|170|Colombia||Bogotá|South America|COP|+57
KM|COM|174|Comoros||Moroni|Africa|KMF|+269
CG|COG|178|Republic of the Congo|Congo, Rep.|Brazzaville|Africa|XAF|+242
CD|COD|180|Democratic Republic of the Congo|Congo, Dem. Rep.|Kinshasa|Africa|CDF|+243
CR|CRI|188|Costa Rica||San José|North America|CRC|+506
CI|CIV|384|Ivory Coast|Côte d'Ivoire|Yamoussoukro|Africa|XOF|+225
HR|HRV|191|Croatia||Zagreb|Europe|EUR|+385
CU|CUB|192|Cuba||Havana|North America|CUP|+53
CY|CYP|196|Cyprus||Nicosia|Asia|EUR|+357
CZ|CZE|203|Czechia|Czech Republic|Prague|Europe|CZK|+420
DK|DNK|208|Denmark||Copenhagen|Europe|DKK|+45
DJ|DJI|262|Djibouti||Djibouti|Africa|DJF|+253
DM|DMA|212|Dominica||Roseau|North America|XCD|+1-767
DO|DOM|214|Dominican Republic||Santo Domingo|North America|DOP|+1-809
EC|ECU|218|Ecuador||Quito|South America|USD|+593
EG|EGY|818|Egypt|Egypt, Arab Rep.|Cairo|Africa|EGP|+20
SV|SLV|222|El Salvador||San Salvador|North America|USD|+503
GQ|GNQ|226|Equatorial Guinea||Malabo|Africa|XAF|+240
ER|ERI|232|Eritrea||Asmara|Africa|ERN|+291
EE|EST|233|Estonia||Tallinn|Europe|EUR|+372
SZ|SWZ|748|Eswatini|Swaziland|Mbabane|Africa|SZL|+268
ET|ETH|231|Ethiopia||Addis Ababa|Africa|ETB|+251
FJ|FJI|242|Fiji||Suva|Oceania|FJD|+679
FI|FIN|246|Finland||Helsinki|Europe|EUR|+358
FR|FRA|250|France||Paris|Europe|EUR|+33
GA|GAB|266|Gabon||Libreville|Africa|XAF|+241
GM|GMB|270|Gambia|Gambia, The|Banjul|Africa|GMD|+220
GE|GEO|268|Georgia||Tbilisi|Asia|GEL|+995
DE|DEU|276|Germany||Berlin|Europe|EUR|+49
GH|GHA|288|Ghana||Accra|Africa|GHS|+233
GR|GRC|300|Greece||Athens|Europe|EUR|+30
GD|GRD|308|Grenada||Saint George's|North America|XCD|+1-473
GT|GTM|320|Guatemala||Guatemala City|North America|GTQ|+502
GN|GIN|324|Guinea||Conakry|Africa|GNF|+224
GW|GNB|624|Guinea-Bissau||Bissau|Africa|XOF|+245
GY|GUY|328|Guyana||Georgetown|South America|GYD|+592
HT|HTI|332|Haiti||Port-au-Prince|North America|HTG|+509
HN|HND|340|Honduras||Tegucigalpa|North America|HNL|+504
HU|HUN|348|Hungary||Budapest|Europe|HUF|+36
IS|ISL|352|Iceland||Reykjavík|Europe|ISK|+354
IN|IND|356|India||New Delhi|Asia|INR|+91
ID|IDN|360|Indonesia||Jakarta|Asia|IDR|+62
IR|IRN|364|Iran|Iran, Islamic Rep.|Tehran|Asia|IRR|+98
IQ|IRQ|368|Iraq||Baghdad|Asia|IQD|+964
IE|IRL|372|Ireland||Dublin|Europe|EUR|+353
IL|ISR|376|Israel||Jerusalem|Asia|ILS|+972
IT|ITA|380|Italy||Rome|Europe|EUR|+39
JM|JAM|388|Jamaica||Kingston|North America|JMD|+1-876
JP|JPN|392|Japan||Tokyo|Asia|JPY|+81
JO|JOR|400|Jordan||Amman|Asia|JOD|+962
KZ|KAZ|398|Kazakhstan||Astana|Asia|KZT|+7
KE|KEN|404|Kenya||Nairobi|Africa|KES|+254
KI|KIR|296|Kiribati||South Tarawa|Oceania|AUD|+686
KP|PRK|408|North Korea|Korea, Dem. People's Rep.|Pyongyang|Asia|KPW|+850
KR|KOR|410|South Korea|Korea, Rep.|Seoul|Asia|KRW|+82
KW|KWT|414|Kuwait||Kuwait City|Asia|KWD|+965
KG|KGZ|417|Kyrgyzstan|Kyrgyz Republic|Bishkek|Asia|KGS|+996
LA|LAO|418|Laos|Lao PDR|Vientiane|Asia|LAK|+856
LV|LVA|428|Latvia||Riga|Europe|EUR|+371
LB|LBN|422|Lebanon||Beirut|Asia|LBP|+961
LS|LSO|426|Lesotho||Maseru|Africa|LSL|+266
LR|LBR|430|Liberia||Monrovia|Africa|LRD|+231
LY|LBY|434|Libya||Tripoli|Africa|LYD|+218
LI|LIE|438|Liechtenstein||Vaduz|Europe|CHF|+423
LT|LTU|440|Lithuania||Vilnius|Europe|EUR|+370
LU|LUX|442|Luxembourg||Luxembourg|Europe|EUR|+352
MG|MDG|450|Madagascar||Antananarivo|Africa|MGA|+261
MW|MWI|454|Malawi||Lilongwe|Africa|MWK|+265
MY|MYS|458|Malaysia||Kuala Lumpur|Asia|MYR|+60
MV|MDV|462|Maldives||Malé|Asia|MVR|+960
ML|MLI|466|Mali||Bamako|Africa|XOF|+223
MT|MLT|470|Malta||Valletta|Europe|EUR|+356
MH|MHL|584|Marshall Islands||Majuro|Oceania|USD|+692
MR|MRT|478|Mauritania||Nouakchott|Africa|MRU|+222
MU|MUS|480|Mauritius||Port Louis|Africa|MUR|+230
MX|MEX|484|Mexico||Mexico City|North America|MXN|+52
FM|FSM|583|Micronesia|Micronesia, Fed. Sts.|Palikir|Oceania|USD|+691
MD|MDA|498|Moldova|Moldova, Republic of|Chișinău|Europe|MDL|+373
MC|MCO|492|Monaco||Monaco|Europe|EUR|+377
MN|MNG|496|Mongolia||Ulaanbaatar|Asia|MNT|+976
ME|MNE|499|Montenegro||Podgorica|Europe|EUR|+382
MA|MAR|504|Morocco||Rabat|Africa|MAD|+212
MZ|MOZ|508|Mozambique||Maputo|Africa|MZN|+258
MM|MMR|104|Myanmar|Burma|Naypyidaw|Asia|MMK|+95
NA|NAM|516|Namibia||Windhoek|Africa|NAD|+264
NR|NRU|520|Nauru||Yaren|Oceania|AUD|+674
NP|NPL|524|Nepal||Kathmandu|Asia|NPR|+977
NL|NLD|528|Netherlands|Netherlands, The|Amsterdam|Europe|EUR|+31
NZ|NZL|554|New Zealand||Wellington|Oceania|NZD|+64
NI|NIC|558|Nicaragua||Managua|North America|NIO|+505
NE|NER|562|Niger||Niamey|Africa|XOF|+227
NG|NGA|566|Nigeria||Abuja|Africa|NGN|+234
MK|MKD|807|North Macedonia||Skopje|Europe|MKD|+389
NO|NOR|578|Norway||Oslo|Europe|NOK|+47
OM|OMN|512|Oman||Muscat|Asia|OMR|+968
PK|PAK|586|Pakistan||Islamabad|Asia|PKR|+92
PW|PLW|585|Palau||Ngerulmud|Oceania|USD|+680
PA|PAN|591|Panama||Panama City|North America|PAB|+507
PG|PNG|598|Papua New Guinea||Port Moresby|Oceania|PGK|+675
PY|PRY|600|Paraguay||Asunción|South America|PYG|+595
PE|PER|604|Peru||Lima|South America|PEN|+51
PH|PHL|608|Philippines||Manila|Asia|PHP|+63
PL|POL|616|Poland||Warsaw|Europe|PLN|+48
PT|PRT|620|Portugal||Lisbon|Europe|EUR|+351
QA|QAT|634|Qatar||Doha|Asia|QAR|+974
RO|ROU|642|Romania||Bucharest|Europe|RON|+40
RU|RUS|643|Russia|Russian Federation|Moscow|Europe|RUB|+7
RW|RWA|646|Rwanda||Kigali|Africa|RWF|+250
KN|KNA|659|Saint Kitts and Nevis|St. Kitts & Nevis|Basseterre|North America|XCD|+1-869
LC|LCA|662|Saint Lucia|St. Lucia|Castries|North America|XCD|+1-758
VC|VCT|670|Saint Vincent and the Grenadines|St. Vincent & the Grenadines|Kingstown|\
North America|XCD|+1-784
WS|WSM|882|Samoa||Apia|Oceania|WST|+685
SM|SMR|674|San Marino||San Marino|Europe|EUR|+378
ST|STP|678|São Tomé and Príncipe|Sao Tome & Principe|São Tomé|Africa|STN|+239
SA|SAU|682|Saudi Arabia||Riyadh|Asia|SAR|+966
SN|SEN|686|Senegal||Dakar|Africa|XOF|+221
RS|SRB|688|Serbia||Belgrade|Europe|RSD|+381
SC|SYC|690|Seychelles||Victoria|Africa|SCR|+248
SL|SLE|694|Sierra Leone||Freetown|Africa|SLE|+232
SG|SGP|702|Singapore||Singapore|Asia|SGD|+65
SK|SVK|703|Slovakia|Slovak Republic|Bratislava|Europe|EUR|+421
SI|SVN|705|Slovenia||Ljubljana|Europe|EUR|+386
SB|SLB|090|Solomon Islands||Honiara|Oceania|SBD|+677
SO|SOM|706|Somalia||Mogadishu|Africa|SOS|+252
ZA|ZAF|710|South Africa||Pretoria|Africa|ZAR|+27
SS|SSD|728|South Sudan||Juba|Africa|SSP|+211
ES|ESP|724|Spain||Madrid|Europe|EUR|+34
LK|LKA|144|Sri Lanka||Sri Jayawardenepura Kotte|Asia|LKR|+94
SD|SDN|729|Sudan||Khartoum|Africa|SDG|+249
SR|SUR|740|Suriname||Paramaribo|South America|SRD|+597
SE|SWE|752|Sweden||Stockholm|Europe|SEK|+46
CH|CHE|756|Switzerland||Bern|Europe|CHF|+41
SY|SYR|760|Syria|Syrian Arab Republic|Damascus|Asia|SYP|+963
TW|TWN|158|Taiwan||Taipei|Asia|TWD|+886
TJ|TJK|762|Tajikistan||Dushanbe|Asia|TJS|+992
TZ|TZA|834|Tanzania|Tanzania, United Rep.|Dodoma|Africa|TZS|+255
TH|THA|764|Thailand||Bangkok|Asia|THB|+66
TL|TLS|626|Timor-Leste|East Timor|Dili|Asia|USD|+670
TG|TGO|768|Togo||Lomé|Africa|XOF|+228
TO|TON|776|Tonga||Nuku'alofa|Oceania|TOP|+676
TT|TTO|780|Trinidad and Tobago|Trinidad & Tobago|Port of Spain|North America|TTD|+1-868
TN|TUN|788|Tunisia||Tunis|Africa|TND|+216
TR|TUR|792|Turkey|Türkiye|Ankara|Asia|TRY|+90
TM|TKM|795|Turkmenistan||Ashgabat|Asia|TMT|+993
TV|TUV|798|Tuvalu||Funafuti|Oceania|AUD|+688
UG|UGA|800|Uganda||Kampala|Africa|UGX|+256
UA|UKR|804|Ukraine||Kyiv|Europe|UAH|+380
AE|ARE|784|United Arab Emirates|U.A.E.|Abu Dhabi|Asia|AED|+971
GB|GBR|826|United Kingdom|U.K.|London|Europe|GBP|+44
US|USA|840|United States|United States of America|Washington, D.C.|North America|USD|+1
UY|URY|858|Uruguay||Montevideo|South America|UYU|+598
UZ|UZB|860|Uzbekistan||Tashkent|Asia|UZS|+998
VU|VUT|548|Vanuatu||Port Vila|Oceania|VUV|+678
VA|VAT|336|Vatican City|Holy See|Vatican City|Europe|EUR|+39
VE|VEN|862|Venezuela|Venezuela, RB|Caracas|South America|VES|+58
VN|VNM|704|Vietnam|Viet Nam|Hanoi|Asia|VND|+84
YE|YEM|887|Yemen|Yemen, Rep.|Sana'a|Asia|YER|+967
ZM|ZMB|894|Zambia||Lusaka|Africa|ZMW|+260
ZW|ZWE|716|Zimbabwe||Harare|Africa|ZWG|+263
""")

CURRENCIES = parse("""
code|currency|minor_units|symbol
AED|UAE dirham|2|
ARS|Argentine peso|2|$
AUD|Australian dollar|2|A$
BGN|Bulgarian lev|2|
BHD|Bahraini dinar|3|
BRL|Brazilian real|2|R$
CAD|Canadian dollar|2|C$
CHF|Swiss franc|2|
CLP|Chilean peso|0|$
CNY|Renminbi (yuan)|2|¥
COP|Colombian peso|2|$
CZK|Czech koruna|2|Kč
DKK|Danish krone|2|kr
EGP|Egyptian pound|2|
EUR|Euro|2|€
GBP|Pound sterling|2|£
HUF|Hungarian forint|2|Ft
IDR|Indonesian rupiah|2|Rp
ILS|Israeli new shekel|2|
INR|Indian rupee|2|₹
ISK|Icelandic króna|0|kr
JOD|Jordanian dinar|3|
JPY|Japanese yen|0|¥
KES|Kenyan shilling|2|
KRW|South Korean won|0|
KWD|Kuwaiti dinar|3|
MAD|Moroccan dirham|2|
MXN|Mexican peso|2|$
MYR|Malaysian ringgit|2|RM
NGN|Nigerian naira|2|
NOK|Norwegian krone|2|kr
NZD|New Zealand dollar|2|NZ$
PEN|Peruvian sol|2|
PHP|Philippine peso|2|
PKR|Pakistani rupee|2|
PLN|Polish złoty|2|zł
RON|Romanian leu|2|
RSD|Serbian dinar|2|
RUB|Russian rouble|2|
SAR|Saudi riyal|2|
SEK|Swedish krona|2|kr
SGD|Singapore dollar|2|S$
THB|Thai baht|2|
TND|Tunisian dinar|3|
TRY|Turkish lira|2|
TWD|New Taiwan dollar|2|NT$
UAH|Ukrainian hryvnia|2|
USD|US dollar|2|$
VND|Vietnamese đồng|0|
ZAR|South African rand|2|R
""")

NATIONAL_DAYS = parse("""
country|day|occasion
France|14 July|Fête nationale
United States|4 July|Independence Day
Germany|3 October|Day of German Unity
Switzerland|1 August|Swiss National Day
Italy|2 June|Republic Day
Spain|12 October|Fiesta Nacional
Portugal|10 June|Portugal Day
Ireland|17 March|Saint Patrick's Day
Norway|17 May|Constitution Day
Sweden|6 June|National Day
Finland|6 December|Independence Day
Poland|11 November|Independence Day
Austria|26 October|National Day
Belgium|21 July|National Day
Netherlands|27 April|King's Day
Greece|25 March|Independence Day
Turkey|29 October|Republic Day
India|26 January|Republic Day
Pakistan|14 August|Independence Day
China|1 October|National Day
Vietnam|2 September|National Day
Indonesia|17 August|Independence Day
Singapore|9 August|National Day
Malaysia|31 August|Merdeka Day
Philippines|12 June|Independence Day
Australia|26 January|Australia Day
New Zealand|6 February|Waitangi Day
Canada|1 July|Canada Day
Mexico|16 September|Independence Day
Brazil|7 September|Independence Day
Argentina|9 July|Independence Day
Chile|18 September|Fiestas Patrias
Colombia|20 July|Independence Day
Peru|28 July|Fiestas Patrias
South Africa|27 April|Freedom Day
Nigeria|1 October|Independence Day
Kenya|12 December|Jamhuri Day
Iceland|17 June|Icelandic National Day
Croatia|30 May|Statehood Day
Ukraine|24 August|Independence Day
""")
