"""Property tests here decode quickly, but a busy machine must not fail them: no time limit per example."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
