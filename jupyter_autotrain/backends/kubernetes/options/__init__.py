"""What profiles and headers may say."""
