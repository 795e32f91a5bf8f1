"""What flows: tables with their schema, generalised values, hierarchies, and what is known of a release."""
