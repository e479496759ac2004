"""Custom kinds that the double serves: minimal schemas of what is sent and read, admission, stock objects."""
