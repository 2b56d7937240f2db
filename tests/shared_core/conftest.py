"""Settings of all properties."""

from hypothesis import settings

# No deadline: how long an example takes says nothing on a machine that does other work as well.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
