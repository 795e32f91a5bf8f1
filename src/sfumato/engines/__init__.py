"""Where it runs. An engine has two verbs, ``map`` and ``fold``; every engine gives the same answer."""
