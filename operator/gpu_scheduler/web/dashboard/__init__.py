"""The dashboard's server: who may read, what they are sent, and how it stays bounded."""
