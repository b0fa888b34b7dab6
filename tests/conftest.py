"""What holds for all tests."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]  # the plugin for users' tests is tested with pytest's own means

# A busy machine must not fail a test: how long an example takes says nothing about the code.
settings.register_profile("voxmeter", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("voxmeter")
