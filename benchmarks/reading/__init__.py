"""Hard delimited files with a known truth: how many are read as it says.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
`tables`       plain tables of known values
`rules`        the ways in which a table is written badly, and files made by them
`pollock`      the files of the Pollock benchmark, from a folder
`readers`      pexeso and the others that read them
`scoring`      when a table is read as it should be
=============  ====================================================================================
"""
