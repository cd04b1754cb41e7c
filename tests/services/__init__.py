"""Real services from wheels, each a module of fixtures. `tests/conftest.py` names them in `pytest_plugins`."""
