"""What every face of pexeso calls: one typed request for each verb, answered by one service."""
