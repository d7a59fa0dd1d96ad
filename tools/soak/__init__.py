"""``make soak``: visitors come and go on scripted engines for minutes, and nothing may be lost, leaked or grow."""
