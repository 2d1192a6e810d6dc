"""The Spark session: started and stopped, its Java, its folders, and what its failures mean."""
