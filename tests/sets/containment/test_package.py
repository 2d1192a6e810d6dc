import pkgutil

import pexeso.sets.containment

NAMES = [module.name for module in pkgutil.iter_modules(pexeso.sets.containment.__path__)]


def test_the_package_says_which_module_is_which_part():
    assert [name for name in NAMES if f"`{name}`" not in pexeso.sets.containment.__doc__] == []
