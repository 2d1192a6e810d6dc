"""Building a partition: vectors checked, mapped, ordered and cut; the map and the levels of a grid chosen by cost."""
