"""What PostgreSQL holds: numbered migrations, and one file per SQL function."""
