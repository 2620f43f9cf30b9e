"""Small circuits and batches of them: from columns to certified potentials in one kernel."""
