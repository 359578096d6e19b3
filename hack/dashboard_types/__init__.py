"""TypeScript's types of the dashboard's answers, made from the operator's own."""
