"""TypeScript's types of our kinds as the API server has them, for the plugin of Headlamp."""
