"""The product's API: custom resources, names on other people's objects, the ledger's format."""
