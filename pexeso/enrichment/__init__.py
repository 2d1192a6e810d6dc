"""What enrichment is made of: rules, columns read as numbers or text, and the found tables gathered one at a time."""
