"""The web app: pages of this machine for one index, thin over `pexeso.faces.service`."""
