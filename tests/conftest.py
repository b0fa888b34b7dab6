"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]  # the plugin for users' tests is tested with pytest's own means

# A busy machine must not fail a test: how long an example takes says nothing about the code.
settings.register_profile("voxmeter", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("voxmeter")

# Started in the background of a shell, this process would ignore interrupts, as would its children;
# tests that send one count on it.
signal.signal(signal.SIGINT, signal.default_int_handler)
