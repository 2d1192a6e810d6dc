"""What estimates of parts rest on: a sample of the lake, read and scaled, and the seconds that stages take."""
