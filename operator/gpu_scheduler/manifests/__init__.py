"""``kubectl gpu render``: manifests of any kind, with the pods that ask for a share made ours."""
