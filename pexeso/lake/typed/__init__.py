"""Files whose cells have types: Arrow and Parquet, spreadsheets, databases."""
