"""Many runs beside each other: which there are, running them in processes of their own, and keeping their records."""
