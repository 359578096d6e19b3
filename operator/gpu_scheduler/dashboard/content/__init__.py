"""A module for each page: what it shows of a picture to one reader. Pure."""
