"""The embedded model: a small real model that needs no model hub, fetched, converted, checked and cached once."""
