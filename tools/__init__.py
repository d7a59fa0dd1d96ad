"""Programs that build and check the project. They need nothing but the standard library."""
